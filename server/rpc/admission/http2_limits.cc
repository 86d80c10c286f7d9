#include "lockstep/server/rpc/admission/http2_limits.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/server/rpc/admission/library_calls.h"

// Functions of libgrpc.so.29. The library calls them through its symbol table, where a definition in the program takes
// precedence over the library's own. The definitions below call the library's functions.
#define BEGIN_FRAME                                                                                        \
  "_ZN9grpc_core11HPackParser10BeginFrameEP19grpc_metadata_batchjNS0_8BoundaryENS0_8PriorityENS0_7LogInfo" \
  "E"
#define PERFORM_READ "_Z24grpc_chttp2_perform_readP21grpc_chttp2_transportRK10grpc_slice"
#define STREAM_MAP_SIZE "_Z27grpc_chttp2_stream_map_sizeP22grpc_chttp2_stream_map"
#define STREAM_CONSTRUCTOR \
  "_ZN18grpc_chttp2_streamC1EP21grpc_chttp2_transportP20grpc_stream_refcountPKvPN9grpc_core5ArenaE"
#define STREAM_DESTRUCTOR "_ZN18grpc_chttp2_streamD1Ev"
#define ADD_PING_STRIKE "_Z27grpc_chttp2_add_ping_strikeP21grpc_chttp2_transport"

namespace lockstep {
namespace {

// HPackParser::LogInfo and HPackParser::Boundary.
struct FrameInfo {
  uint32_t stream_id;
  uint8_t type;
  bool is_client;
};
constexpr uint8_t kMoreFramesFollow = 0;
constexpr uint8_t kEndOfHeaders = 1;

bool IsGrpcWithoutLimits() {
  static const bool is = absl::StartsWith(grpc::Version(), "1.51.");
  return is;
}

// Returns the library's function, or null if the library has no function of this name or precedes the program in the
// search order.
template <typename Function>
Function* Original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// A count of the live streams of each server connection. A connection is identified by the address of its map of
// streams. Thread-safe.
class LivingStreams {
 public:
  static LivingStreams& Get() {
    static auto* const streams = new LivingStreams();  // gRPC's threads may outlive main
    return *streams;
  }

  void Add(const void* stream, const void* connection) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    connection_of_[stream] = connection;
    ++count_of_[connection];
  }

  // Does nothing if the stream belongs to a client.
  void Remove(const void* stream) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    const auto found = connection_of_.find(stream);
    if (found == connection_of_.end()) return;
    const auto count = count_of_.find(found->second);
    if (--count->second == 0) count_of_.erase(count);
    connection_of_.erase(found);
  }

  // Returns true if the connection must not have another stream.
  bool IsFull(const void* connection) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    const auto count = count_of_.find(connection);
    if (count == count_of_.end()) return false;
    const bool are_many = connection_of_.size() > kManyLivingCalls;
    return count->second >= (are_many ? kFewLivingCallsPerConnection : kMaxLivingCallsPerConnection);
  }

 private:
  Mutex mutex_;
  std::unordered_map<const void*, const void*> connection_of_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<const void*, int> count_of_ ABSL_GUARDED_BY(mutex_);
};

// The connection whose frame this thread is parsing. StreamMapSize sets it and ConstructStream uses it: gRPC compares
// the number of streams with its limit and then constructs the stream, and does nothing for another connection in
// between.
thread_local const void* parsed_connection = nullptr;

// True while this thread is parsing data that a connection has received.
thread_local bool is_parsing = false;

}  // namespace

absl::Status PerformRead(void* connection, const void* bytes) __asm__(PERFORM_READ);

// gRPC calls this for all bytes that a connection receives.
absl::Status PerformRead(void* connection, const void* bytes) {
  static auto* const original = Original<decltype(PerformRead)>(PERFORM_READ);
  is_parsing = true;
  absl::Status status = original(connection, bytes);
  is_parsing = false;
  return status;
}

extern "C" {

void BeginFrame(void* parser, void* headers, uint32_t limit, uint8_t boundary, uint8_t priority,
                FrameInfo info) __asm__(BEGIN_FRAME);
size_t StreamMapSize(void* map) __asm__(STREAM_MAP_SIZE);
void ConstructStream(void* stream, void* connection, void* references, const void* of_server,
                     void* arena) __asm__(STREAM_CONSTRUCTOR);
void DestroyStream(void* stream) __asm__(STREAM_DESTRUCTOR);
void AddPingStrike(void* connection) __asm__(ADD_PING_STRIKE);

// gRPC calls this for each frame with headers. gRPC applies `limit` to each frame separately; `limit` is 16 MiB until
// the peer confirms the server's settings. A frame after which more headers follow is parsed as if it were the last
// one, with a limit of 0, so that any header in it, even an incomplete one, is a connection error.
void BeginFrame(void* parser, void* headers, uint32_t limit, uint8_t boundary, uint8_t priority, FrameInfo info) {
  static auto* const original = Original<decltype(BeginFrame)>(BEGIN_FRAME);
  if (IsGrpcWithoutLimits() && !info.is_client) {
    limit = boundary == kMoreFramesFollow ? 0 : std::min<uint32_t>(limit, kMaxHeaderBytes);
    if (boundary == kMoreFramesFollow) boundary = kEndOfHeaders;
  }
  original(parser, headers, limit, boundary, priority, info);
}

// gRPC compares the number of streams with its limit. For a full connection, this reports a number above any limit, so
// that the next request is a connection error. Outside the parser, it reports the true number: when memory is short,
// gRPC cancels a stream if this number is not 0, and must not look for one in an empty map.
size_t StreamMapSize(void* map) {
  static auto* const original = Original<decltype(StreamMapSize)>(STREAM_MAP_SIZE);
  parsed_connection = map;
  const bool is_full = is_parsing && IsGrpcWithoutLimits() && LivingStreams::Get().IsFull(map);
  return is_full ? std::numeric_limits<size_t>::max() : original(map);
}

void ConstructStream(void* stream, void* connection, void* references, const void* of_server, void* arena) {
  static auto* const original = Original<decltype(ConstructStream)>(STREAM_CONSTRUCTOR);
  if (of_server != nullptr) LivingStreams::Get().Add(stream, parsed_connection);
  original(stream, connection, references, of_server, arena);
}

void DestroyStream(void* stream) {
  static auto* const original = Original<decltype(DestroyStream)>(STREAM_DESTRUCTOR);
  LivingStreams::Get().Remove(stream);
  original(stream);
}

// gRPC calls this for each ping that arrives too early. The third one closes the connection, but only after gRPC has
// parsed the bytes that it has read, and each additional one adds to the connection's error: 3 MB of pings take 64 MB.
// Most additional ones are therefore dropped, but not all, because a later connection may have the same address.
void AddPingStrike(void* connection) {
  static auto* const original = Original<decltype(AddPingStrike)>(ADD_PING_STRIKE);
  thread_local const void* struck_connection = nullptr;
  thread_local uint32_t strikes = 0;
  strikes = connection == struck_connection ? strikes + 1 : 1;
  struck_connection = connection;
  if (!IsGrpcWithoutLimits() || strikes <= 8 || strikes % 1024 == 0) original(connection);
}

}  // extern "C"

absl::Status CheckHttp2Limits() {
  if (!IsGrpcWithoutLimits()) return absl::OkStatus();
  struct Replacement {
    const char* name;
    void* definition;
  };
  const Replacement replacements[] = {{BEGIN_FRAME, reinterpret_cast<void*>(&BeginFrame)},
                                      {PERFORM_READ, reinterpret_cast<void*>(&PerformRead)},
                                      {STREAM_MAP_SIZE, reinterpret_cast<void*>(&StreamMapSize)},
                                      {STREAM_CONSTRUCTOR, reinterpret_cast<void*>(&ConstructStream)},
                                      {STREAM_DESTRUCTOR, reinterpret_cast<void*>(&DestroyStream)},
                                      {ADD_PING_STRIKE, reinterpret_cast<void*>(&AddPingStrike)}};
  for (const Replacement& each : replacements) {
    // The program must export the definition, and the dynamic linker must search the program before the library. The
    // library must have the function, and must not be linked so that it always calls its own.
    const bool is_found = dlsym(RTLD_DEFAULT, each.name) == each.definition;
    void* const original = dlsym(RTLD_NEXT, each.name);
    if (is_found && original != nullptr && LibraryCalls(each.name, original, each.definition)) continue;
    return absl::FailedPreconditionError(absl::StrCat("gRPC ", grpc::Version(), " is linked so that ", each.name,
                                                      " cannot be replaced: a peer could take any amount of memory"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
