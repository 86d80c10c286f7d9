// Compiled whenever a program is linked, with the values of --stamp and --embed_label. This is the only object that a
// new revision changes.
namespace lockstep {

extern const char kStampedRevision[];
const char kStampedRevision[] = BUILD_EMBED_LABEL;

}  // namespace lockstep
