// Compiled whenever a program is linked, with what --stamp and --embed_label say: the one object that a new revision
// changes.
namespace lockstep {

extern const char kStampedRevision[];
const char kStampedRevision[] = BUILD_EMBED_LABEL;

}  // namespace lockstep
