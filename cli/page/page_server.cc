#include "lockstep/cli/page/page_server.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/cli/page/metrics_text.h"
#include "lockstep/cli/page/page_html.h"
#include "lockstep/cli/page/recorded_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/transport/grpc_chief_client.h"

namespace lockstep {
namespace {

// Maximum size of a checkpoint whose digest is computed. Reading a larger one would disturb the run.
constexpr uint64_t kMaxDigestedBytes = 256 << 20;

constexpr char kJsonType[] = "application/json; charset=utf-8";

HttpReply ReplyWith(const char* type, std::string body) {
  HttpReply reply;
  reply.content_type = type;
  reply.body = std::make_shared<const std::string>(std::move(body));
  return reply;
}

HttpReply NotFound(const std::string& path) {
  HttpReply reply =
      ReplyWith("text/plain; charset=utf-8",
                absl::StrCat("there is no ", path, "; try /, /state.json, /status.json, /metrics, /healthz\n"));
  reply.status = 404;
  return reply;
}

bool IsOver(const v1::RunStatus& status) {
  return status.phase() == v1::RunStatus::FINISHED || status.phase() == v1::RunStatus::FAILED;
}

template <typename Number>
void ReadArgument(const HttpRequest& request, const char* name, Number* value) {
  Number read = 0;
  const auto text = request.argument(name);
  if (text && absl::SimpleAtoi(*text, &read)) *value = read;
}

RunView::Cursor CursorOf(const HttpRequest& request) {
  RunView::Cursor cursor;
  ReadArgument(request, "version", &cursor.version);
  ReadArgument(request, "points", &cursor.points);
  ReadArgument(request, "event", &cursor.event);
  return cursor;
}

const std::shared_ptr<const std::string>& PageHtml() {
  static const auto& html = *new std::shared_ptr<const std::string>(new std::string(kPageHtml));
  return html;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(Options options) {
  std::unique_ptr<PageServer> page(new PageServer(std::move(options)));
  const Options& started = page->options_;
  if (!started.master) RETURN_IF_ERROR(ReadRecordedRun(started.fs, started.logdir).status());
  RETURN_IF_ERROR(page->Listen());
  if (started.master) {
    RunFollower::Options follower;
    follower.fs = started.fs;
    follower.clock = started.clock;
    follower.view = &page->view_;
    follower.master = *started.master;
    GrpcClientOptions client;
    client.credentials = started.credentials;
    follower.watch = [client](const std::string& target) {
      return NewGrpcRunFeed(target, v1::WatchRunRequest(), client);
    };
    page->follower_ = std::make_unique<RunFollower>(std::move(follower));
  }
  PeriodicTask::Options files;
  files.clock = started.clock;
  files.name = "files";
  files.period = started.file_period;
  page->files_ = std::make_unique<PeriodicTask>(files, [self = page.get()] { self->ReadFiles(); });
  return page;
}

PageServer::PageServer(Options options)
    : options_(std::move(options)), view_(options_.clock, options_.master ? options_.master_text : options_.logdir) {}

absl::Status PageServer::Listen() {
  HttpServer::Options http = options_.http;
  http.handler = [this](const HttpRequest& request) { return Answer(request); };
  auto server = HttpServer::Start(http);
  if (absl::IsUnavailable(server.status()) && options_.any_port) {
    http.address = absl::StrCat(http.address.substr(0, http.address.rfind(':')), ":0");
    server = HttpServer::Start(http);
  }
  RETURN_IF_ERROR(server.status());
  server_ = *std::move(server);
  return absl::OkStatus();
}

void PageServer::ReadFiles() {
  if (!options_.master) {
    const auto run = ReadRecordedRun(options_.fs, options_.logdir);
    std::string bytes = run.ok() ? run->SerializeAsString() : "";
    if (run.ok() && bytes != recorded_) {
      recorded_ = std::move(bytes);
      view_.OnConnected();
      view_.OnReply(*run);
      view_.OnOver(IsOver(run->status()) ? absl::OkStatus()
                                         : absl::UnavailableError("This is what the folder holds; the run is not over, "
                                                                  "and the same command continues it."));
    }
  }
  const std::string logdir = options_.logdir.empty() ? view_.logdir() : options_.logdir;
  if (logdir.empty()) return;
  view_.SetEvaluations(ReadEvaluations(options_.fs, logdir));
  ReadDigest();
}

void PageServer::ReadDigest() {
  const std::string checkpoint = view_.checkpoint();
  if (checkpoint.empty() || checkpoint == digested_) return;
  digested_ = checkpoint;
  const auto digest = DigestOfCheckpoint(options_.fs, checkpoint, kMaxDigestedBytes);
  if (digest.ok()) view_.SetDigest(checkpoint, *digest);
}

HttpReply PageServer::Answer(const HttpRequest& request) const {
  if (request.path == "/") {
    HttpReply reply;
    reply.content_type = "text/html; charset=utf-8";
    reply.body = PageHtml();
    return reply;
  }
  if (request.path == "/state.json") {
    HttpReply reply;
    reply.content_type = kJsonType;
    reply.body = view_.StateJson(CursorOf(request));
    return reply;
  }
  if (request.path == "/status.json") return ReplyWith(kJsonType, view_.StatusJson());
  if (request.path == "/metrics") return ReplyWith(kMetricsType, MetricsText(view_.facts()));
  if (request.path == "/healthz") return ReplyWith("text/plain; charset=utf-8", "ok\n");
  return NotFound(request.path);
}

}  // namespace lockstep
