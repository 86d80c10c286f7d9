/* Lockstep for programs in C and in every language that can call it: a worker whose model the program computes, and
 * reads of runs and checkpoints. The chief is a program of its own: `lockstep chief`, chief_main. liblockstep.so
 * exports these functions, those of kernels.h, and nothing else.
 *
 * Results. A function that can fail returns a lockstep_code. lockstep_error() then has the reason, in one sentence for
 * a person. No argument ends the process: a null pointer, an id that was freed or a number out of range is an error.
 *
 * Memory. Text that a function returns (const char*) belongs to the library and is valid until the calling thread's
 * next call of any function here has returned. Everything that the caller passes is copied before the function returns.
 *
 * Threads. Every function may be called from any thread. Functions of one slot must not run at the same time; they
 * then fail with LOCKSTEP_FAILED_PRECONDITION. The library starts threads of its own. It installs no signal handler and
 * blocks no signal. A process that forks must not use the library in the child.
 *
 * Processor. The library is compiled for x86-64-v3 (AVX2, FMA). Loading it on another processor ends the process, so a
 * program that cannot know its processor looks before it loads the library.
 *
 * Versions. Structs begin with their size, so that a newer library accepts an older program: set it to sizeof.
 * Functions are added, never changed, while LOCKSTEP_ABI_VERSION stays the same. */
#ifndef LOCKSTEP_CAPI_LOCKSTEP_H_
#define LOCKSTEP_CAPI_LOCKSTEP_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_ABI_VERSION 1

typedef enum lockstep_code {
  LOCKSTEP_OK = 0,
  LOCKSTEP_CANCELLED = 1,           /* a stop was requested, or the slot is not wanted any more */
  LOCKSTEP_INVALID_ARGUMENT = 3,    /* an argument is wrong; from lockstep_worker_next: the run failed */
  LOCKSTEP_DEADLINE_EXCEEDED = 4,   /* the time passed without a result; try again */
  LOCKSTEP_NOT_FOUND = 5,           /* no such file or checkpoint */
  LOCKSTEP_FAILED_PRECONDITION = 9, /* refused: this program is not what the run needs, or calls are out of order */
  LOCKSTEP_OUT_OF_RANGE = 11,       /* the run is over */
  LOCKSTEP_INTERNAL = 13,           /* the library's own fault, or a disk's */
  LOCKSTEP_UNAVAILABLE = 14,        /* no chief answers */
  LOCKSTEP_DATA_LOSS = 15           /* a file is damaged */
  /* Other numbers are those of google.rpc.Code. */
} lockstep_code;

/* All later connections of this process to chiefs, but those over unix sockets, use TLS with the files ca.crt, tls.crt
 * and tls.key of this directory (docs/security.md), which may be replaced at any time. Null: the directory in the
 * environment variable LOCKSTEP_TLS_DIR, as without this call; empty: no TLS. LOCKSTEP_INVALID_ARGUMENT names the file
 * that is wrong, and then nothing changes. */
int lockstep_use_tls(const char* directory);

/* Names an object of the library. 0 is none. An id is never used again. */
typedef int64_t lockstep_id;

/* LOCKSTEP_ABI_VERSION of the library. */
int lockstep_abi_version(void);
/* The release and, if known, its revision: "0.11.0 (revision 1a2b3c4)". */
const char* lockstep_version(void);
/* The reason of the calling thread's last failure. */
const char* lockstep_error(void);

/* Log. `severity` is 0 for information, 1 for a warning, 2 for an error; `line` is one message without a line feed. The
 * function is called from any thread, one call at a time, and must not call the library. Until it is set, warnings and
 * errors go to stderr. Null restores that. When the call returns, the function set before it is not running and is not
 * called again. */
typedef void (*lockstep_log_function)(void* context, int severity, const char* line);
int lockstep_set_log(lockstep_log_function function, void* context);

/* Configurations. Parses RunSpec (proto/lockstep/config/v1/run_spec.proto) in protobuf's text format, applies
 * `overrides` ("training.steps=100") in their order, fills in the defaults and validates the result. Exactly one of
 * `text` and `path` is not null; paths in a file are relative to its folder. `canonical`, unless null, becomes the
 * complete configuration in text format, and `json`, unless null, the same in JSON with the names of the proto.
 * LOCKSTEP_INVALID_ARGUMENT has one line for each problem, which begins with the field's path or the line. */
int lockstep_parse_run(const char* text, const char* path, const char* const* overrides, size_t override_count,
                       const char** canonical, const char** json);

/* ---------------------------------------------------------------------------------------------------------------------
 * A worker. lockstep_worker_new starts it; then the program takes slot after slot until the run is over:
 *
 *   while ((code = lockstep_worker_next(worker, -1, &slot)) == LOCKSTEP_OK) {
 *     ... compute the mean loss of slot.indices at slot.values, and its gradients ...
 *     code = lockstep_slot_loss(worker, loss);
 *     for (i = 0; i < variables; ++i) {
 *       lockstep_slot_gradient(worker, i, &gradient);  memcpy(gradient, ...);  lockstep_slot_ready(worker, i);
 *     }
 *     lockstep_slot_done(worker);
 *   }
 *
 * Retries, restarts of the chief, heartbeats and the worker's part of the run's contract are the library's. */

typedef struct lockstep_part {
  const char* name; /* for people: "model source" */
  const void* data;
  size_t size;
} lockstep_part;

typedef struct lockstep_worker_options {
  size_t size; /* sizeof(lockstep_worker_options) */
  /* "grpc://host:port", "unix:/path", several separated by commas, or "file:/path", a file with one of them. */
  const char* master;
  /* Shown in status and logs. Null: worker-PID@HOST. */
  const char* name;
  /* RunSpec in text format, which the run's must equal in everything that the weights depend on. Null: any. */
  const char* run;
  /* lockstep.v1.ModelSpec in text format: variables with their initial values, and update ops. An absent dtype is
   * DT_FLOAT, the only one. */
  const char* model;
  /* lockstep.v1.Framework in text format: the program that computes, its version, and every setting that results depend
   * on. All workers of a run must have the same. Must have a name. */
  const char* framework;
  /* What else the gradients are a function of, compared by digests, part by part. */
  const lockstep_part* parts;
  size_t part_count;
  /* The number of training examples, of which a slot gets input.batch_size indices; 0: slots have no indices. */
  int64_t examples;
  /* A digest of these examples; workers of a run must have the same. */
  uint32_t examples_digest;
  /* How long to look for an absent chief, in seconds; negative: as configured. */
  double chief_wait_seconds;
} lockstep_worker_options;

typedef struct lockstep_slot {
  size_t size; /* sizeof(lockstep_slot), set by the caller */
  /* The global step before the slot's. Under training.async and first_arrivals: its position in the stream `index`,
   * which may come again, with newer values. */
  int64_t step;
  /* In [0, training.replicas_to_aggregate). Under training.async and first_arrivals: the stream. */
  int64_t index;
  /* A function of training.seed, step and index, for generators of random numbers. */
  uint64_t seed;
  /* 1: the run's canary, whose results are only compared with those of other workers: step 0, slot 0, on values of its
   * own. */
  int32_t canary;
  /* 1: the first slot of a session. Values of a step that this program has computed with before may have changed, as a
   * step that was given up begins anew with the variables that the chief's program has set. Within a session the values
   * of a step stay the same, except under training.async and first_arrivals. */
  int32_t fresh;
  /* The examples of the slot's batch, in [0, examples). Valid until the slot is done. */
  const int64_t* indices;
  size_t index_count;
  /* The value of each variable, in the model's order: row-major, aligned to 64 bytes, read-only. Valid until the slot
   * is done. */
  const float* const* values;
  size_t value_count;
} lockstep_slot;

/* Starts a worker. LOCKSTEP_INVALID_ARGUMENT names the wrong option. */
int lockstep_worker_new(const lockstep_worker_options* options, lockstep_id* worker);

/* Waits for the next slot, at most `timeout_seconds`; negative: without a limit. The thread that calls this computes
 * the slot. LOCKSTEP_DEADLINE_EXCEEDED: none yet. LOCKSTEP_OUT_OF_RANGE: the run is over. LOCKSTEP_CANCELLED: the
 * worker was stopped. LOCKSTEP_UNAVAILABLE: no chief answers. LOCKSTEP_INVALID_ARGUMENT: the run failed.
 * LOCKSTEP_FAILED_PRECONDITION: this worker is refused, or the slot before is not done, or the calling thread rounds in
 * another way or treats subnormal numbers as zero; this last one leaves the slot for another call. After the end, every
 * call returns the same. */
int lockstep_worker_next(lockstep_id worker, double timeout_seconds, lockstep_slot* slot);

/* The indices and the seed of any slot, for preparing batches ahead. Writes at most `capacity` indices and sets `count`
 * to their number. LOCKSTEP_FAILED_PRECONDITION before the first slot; LOCKSTEP_OUT_OF_RANGE beyond the last epoch. */
int lockstep_worker_indices(lockstep_id worker, int64_t step, int64_t index, int64_t* indices, size_t capacity,
                            size_t* count);
int lockstep_worker_seed(lockstep_id worker, int64_t step, int64_t index, uint64_t* seed);
/* The run's configuration in text format. LOCKSTEP_FAILED_PRECONDITION before the first slot. */
int lockstep_worker_spec(lockstep_id worker, const char** text);

/* Asks the chief to end the run, for all workers, when the step in progress is committed. A slot of that step is still
 * wanted: finish it. LOCKSTEP_UNAVAILABLE if there is no session now. */
int lockstep_worker_end(lockstep_id worker, const char* reason);
/* Leaves the run, which continues without this worker. A slot that the program holds stays open until it is done. */
int lockstep_worker_stop(lockstep_id worker);
/* Stops the worker, gives up an open slot and waits for the library's threads, a moment. Pointers of the slot are
 * invalid when this is called. A call of lockstep_worker_next in another thread returns LOCKSTEP_CANCELLED. */
int lockstep_worker_free(lockstep_id worker);

/* The results of the open slot, in this order: loss, weight and metrics, update ops, gradients, done.
 * LOCKSTEP_FAILED_PRECONDITION without an open slot or out of order. */

/* The mean loss of the batch, once. LOCKSTEP_CANCELLED: the slot is not wanted any more; drop it. */
int lockstep_slot_loss(lockstep_id worker, float loss);
/* The slot's weight in its step, such as its number of tokens: a finite number, 0 or more; 1 without this call. At most
 * once. Gradients and loss stay those of the batch's mean; the step applies their weighted mean over its slots, and
 * fails the run if all weights are 0. Must be a function of the slot alone. */
int lockstep_slot_weight(lockstep_id worker, float weight);
/* A number for people, such as an accuracy. Status and event file have its mean over the slots of a step that report
 * it, weighted as the slots are; the event file has it at the steps at which it has the loss. At most 32 names a step,
 * of at most 200 bytes; others are ignored. */
int lockstep_slot_metric(lockstep_id worker, const char* name, float value);
/* Requests that the run end when this slot's step is committed. Must be a function of the slot alone. */
int lockstep_slot_end_run(lockstep_id worker);
/* The value of update op `op`, `count` elements, once for each. */
int lockstep_slot_update(lockstep_id worker, size_t op, const float* value, size_t count);
/* The memory for the gradient of trainable variable number `variable`: row-major, aligned to 64 bytes, not initialized.
 * The same pointer until lockstep_slot_ready. */
int lockstep_slot_gradient(lockstep_id worker, size_t variable, float** gradient);
/* The gradient in lockstep_slot_gradient's memory is final and may travel. Once for each trainable variable, after the
 * loss and all update ops. */
int lockstep_slot_ready(lockstep_id worker, size_t variable);
/* The slot has all results. LOCKSTEP_INVALID_ARGUMENT names the first that is missing; the slot stays open. */
int lockstep_slot_done(lockstep_id worker);
/* Gives the slot up. Unless it is not wanted, the worker opens a new session, and the slot is computed again. */
int lockstep_slot_drop(lockstep_id worker);
/* 1 in `wanted` while the slot is wanted. */
int lockstep_slot_wanted(lockstep_id worker, int* wanted);

/* ---------------------------------------------------------------------------------------------------------------------
 * Reads, without a session. */

/* Reads variables, optimizer state and averages of a running chief, all at one step: those with these names, or all if
 * `name_count` is 0. */
int lockstep_read(const char* master, const char* const* names, size_t name_count, double timeout_seconds,
                  lockstep_id* tensors);
/* Reads a checkpoint, a logdir's newest, or a file of weights (.safetensors, .npz). Its step is -1 if it has none. */
int lockstep_load(const char* path, lockstep_id* tensors);

typedef struct lockstep_tensor {
  size_t size; /* sizeof(lockstep_tensor), set by the caller */
  const char* name;
  const char* dtype; /* "float32", "int64", ... */
  const int64_t* shape;
  size_t rank;
  const void* data; /* row-major, little-endian */
  size_t bytes;
} lockstep_tensor;

/* Pointers of a tensor are valid until lockstep_tensors_free. */
int lockstep_tensors_count(lockstep_id tensors, size_t* count, int64_t* step);
int lockstep_tensors_get(lockstep_id tensors, size_t index, lockstep_tensor* tensor);
int lockstep_tensors_free(lockstep_id tensors);

/* The digest of a checkpoint or a logdir's newest, 64 hexadecimal digits, and its path; either may be null. */
int lockstep_digest(const char* path, const char** digest, const char** checkpoint);
/* RunStatus (proto/lockstep/v1/status.proto) of a running chief, in JSON. LOCKSTEP_OUT_OF_RANGE: the run is over, says
 * its address file. */
int lockstep_status(const char* master, double timeout_seconds, const char** json);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LOCKSTEP_CAPI_LOCKSTEP_H_ */
