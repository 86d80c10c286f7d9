/* Lockstep for programs in C, and in every language that can call C: a worker whose model the program computes, and
 * functions that read runs and checkpoints. The chief is a separate program: `lockstep chief`.
 * liblockstep.so exports only these functions and the ones in kernels.h.
 *
 * Results. A function that can fail returns a lockstep_code. lockstep_error() then returns the reason, in one
 * human-readable sentence. No argument ends the process: a null pointer, a freed id or a number out of range is an
 * error.
 *
 * Memory. Text that a function returns (const char*) belongs to the library and is valid until the calling thread's
 * next call of any function here has returned. A function copies everything that the caller passes before it returns.
 *
 * Threads. Every function may be called from any thread. Functions for the same slot must not run at the same time; if
 * they do, they fail with LOCKSTEP_FAILED_PRECONDITION. The library starts its own threads. It installs no signal
 * handlers and blocks no signals. A process that forks must not use the library in the child.
 *
 * Processor. The library is compiled for x86-64-v3 (AVX2, FMA). Loading it on another processor ends the process, so a
 * program that does not know its processor must check it before it loads the library.
 *
 * Versions. Structs begin with their size, so that a newer library accepts an older program. Set it to sizeof. As long
 * as LOCKSTEP_ABI_VERSION stays the same, functions are added but never changed. */
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
  LOCKSTEP_CANCELLED = 1,           /* a stop was requested, or the slot is no longer wanted */
  LOCKSTEP_INVALID_ARGUMENT = 3,    /* an argument is wrong; from lockstep_worker_next: the run failed */
  LOCKSTEP_DEADLINE_EXCEEDED = 4,   /* the time limit passed without a result; try again */
  LOCKSTEP_NOT_FOUND = 5,           /* no such file or checkpoint */
  LOCKSTEP_FAILED_PRECONDITION = 9, /* refused: this program is not what the run needs, or calls are out of order */
  LOCKSTEP_OUT_OF_RANGE = 11,       /* the run is over */
  LOCKSTEP_INTERNAL = 13,           /* an error in the library or on a disk */
  LOCKSTEP_UNAVAILABLE = 14,        /* no chief answers */
  LOCKSTEP_DATA_LOSS = 15           /* a file is damaged */
  /* Other values are as in google.rpc.Code. */
} lockstep_code;

/* Makes all later connections of this process to chiefs, except over unix sockets, use TLS with the files ca.crt,
 * tls.crt and tls.key in this directory (docs/security.md). The files may be replaced at any time. If `directory` is
 * null, uses the directory in the environment variable LOCKSTEP_TLS_DIR, as without this call. If it is empty, uses no
 * TLS. On error, changes nothing. LOCKSTEP_INVALID_ARGUMENT names the file that is wrong. */
int lockstep_use_tls(const char* directory);

/* Names an object in the library. 0 means none. Ids are never reused. */
typedef int64_t lockstep_id;

/* Returns the library's LOCKSTEP_ABI_VERSION. */
int lockstep_abi_version(void);
/* Returns the release and, if known, its revision: "0.12.0 (revision 1a2b3c4)". */
const char* lockstep_version(void);
/* Returns the reason for the calling thread's last failure. */
const char* lockstep_error(void);

/* Logging. `severity` is 0 for information, 1 for a warning and 2 for an error. `line` is one message without a line
 * feed. The library calls the function from any thread, one call at a time. The function must not call the library.
 * Without a function, warnings and errors go to stderr; null restores this. When lockstep_set_log returns, the previous
 * function is not running and will not be called again. */
typedef void (*lockstep_log_function)(void* context, int severity, const char* line);
int lockstep_set_log(lockstep_log_function function, void* context);

/* Configurations. Parses RunSpec (proto/lockstep/config/v1/run_spec.proto) in protobuf's text format, applies
 * `overrides` ("training.steps=100") in order, fills in the defaults and validates the result. Exactly one of `text`
 * and `path` must not be null. Paths in a file are relative to its folder. Unless they are null, sets `canonical` to
 * the complete configuration in text format, and `json` to the same in JSON with the names of the proto. With
 * LOCKSTEP_INVALID_ARGUMENT, the error has one line for each problem, which begins with the field's path or the
 * line. */
int lockstep_parse_run(const char* text, const char* path, const char* const* overrides, size_t override_count,
                       const char** canonical, const char** json);

/* ---------------------------------------------------------------------------------------------------------------------
 * A worker. lockstep_worker_new starts it. Then the program takes one slot after another until the run is over:
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
 * The library handles retries, restarts of the chief, heartbeats and the worker's part of the run's contract.
 *
 * If `lockstep replay -- PROGRAM` has started the program (the environment variable LOCKSTEP_REPLAY), there is no
 * chief: the worker offers the slots of the replay, prints its results to stdout and its errors to stderr, and ends
 * with LOCKSTEP_CANCELLED. */

typedef struct lockstep_part {
  const char* name; /* for people: "model source" */
  const void* data;
  size_t size;
} lockstep_part;

typedef struct lockstep_initial_value {
  const char* variable;
  const void* elements; /* row-major, of the variable's type */
  size_t count;
} lockstep_initial_value;

typedef struct lockstep_worker_options {
  size_t size; /* sizeof(lockstep_worker_options) */
  /* "grpc://host:port", "unix:/path", several of these separated by commas, or "file:/path", a file that contains
   * one. */
  const char* master;
  /* Shown in status and logs. Null means worker-PID@HOST. */
  const char* name;
  /* A RunSpec in text format. The run's must match it in everything that the weights depend on. Null accepts any
   * run. */
  const char* run;
  /* lockstep.v1.ModelSpec in text format: variables with their initial values, and update ops. An absent dtype means
   * DT_FLOAT. A variable that is not trainable may be DT_INT32, DT_INT64, DT_UINT8 or DT_BOOL. */
  const char* model;
  /* lockstep.v1.Framework in text format: the program that computes, its version, and every setting that results depend
   * on. All workers of a run must have the same one. It must have a name. */
  const char* framework;
  /* Everything else that the gradients depend on. Digests of the parts are compared one by one. */
  const lockstep_part* parts;
  size_t part_count;
  /* The number of training examples. A slot gets input.batch_size of their indices. If 0, slots have no indices. */
  int64_t examples;
  /* A digest of these examples. All workers of a run must have the same one. */
  uint32_t examples_digest;
  /* How long to look for an absent chief, in seconds. If negative, as configured. */
  double chief_wait_seconds;
  /* The values that a new run starts from, at most one for each variable. The chief takes them from the first worker,
   * unless its configuration has a checkpoint.warm_start. Variables without a value start from their initializers. The
   * library frees its copy when the first session is open. */
  const lockstep_initial_value* initial_values;
  size_t initial_value_count;
} lockstep_worker_options;

typedef struct lockstep_slot {
  size_t size; /* sizeof(lockstep_slot), set by the caller */
  /* The global step before the slot's step. Under training.async and first_arrivals, the slot's position in the stream
   * `index`; the same position may come again with newer values. */
  int64_t step;
  /* In [0, training.replicas_to_aggregate). Under training.async and first_arrivals, the stream's number. */
  int64_t index;
  /* Depends only on training.seed, step and index. Seeds random number generators. */
  uint64_t seed;
  /* 1 for the run's canary: step 0, slot 0, on special values. Its results are only compared with other workers'
   * results. */
  int32_t canary;
  /* 1 for the first slot of a session. The values of a step that this program has already used may have changed,
   * because an abandoned step starts over with the variables that the chief's program has set. Within a session, a
   * step's values stay the same, except under training.async and first_arrivals. */
  int32_t fresh;
  /* The examples of the slot's batch, in [0, examples). Valid until the slot is done. */
  const int64_t* indices;
  size_t index_count;
  /* The value of each variable, in the model's order. Row-major, aligned to 64 bytes, read-only. Valid until the slot
   * is done. An element of a variable that is not float32 has the variable's type; convert the pointer. */
  const float* const* values;
  size_t value_count;
} lockstep_slot;

/* Starts a worker. LOCKSTEP_INVALID_ARGUMENT names the wrong option. LOCKSTEP_FAILED_PRECONDITION: another process of
 * the program has the slots of the replay. */
int lockstep_worker_new(const lockstep_worker_options* options, lockstep_id* worker);

/* Waits for the next slot for at most `timeout_seconds`, or without a limit if it is negative. The calling thread must
 * compute the slot. LOCKSTEP_DEADLINE_EXCEEDED: there is no slot yet. LOCKSTEP_OUT_OF_RANGE: the run is over.
 * LOCKSTEP_CANCELLED: the worker was stopped, or the replay is over. LOCKSTEP_UNAVAILABLE: no chief answers.
 * LOCKSTEP_INVALID_ARGUMENT: the run failed. LOCKSTEP_FAILED_PRECONDITION: this worker was refused, or the previous
 * slot is not done, or the calling thread rounds differently or treats subnormal numbers as zero. In this last case,
 * the slot remains for another call. After the end, every call returns the same code. */
int lockstep_worker_next(lockstep_id worker, double timeout_seconds, lockstep_slot* slot);

/* A function that computes a slot and finishes or drops it. Returns 0 to receive the next slot. After any other number,
 * lockstep_worker_run returns LOCKSTEP_CANCELLED, and the slot may still be open. `slot` is valid during the call. The
 * function must not throw. lockstep_worker_next, lockstep_worker_run and lockstep_worker_free for its worker return
 * LOCKSTEP_FAILED_PRECONDITION in it. */
typedef int (*lockstep_slot_function)(void* context, const lockstep_slot* slot);

/* Calls `function` for each slot, for at most `timeout_seconds`, or until the worker ends if it is negative. A loop
 * over lockstep_worker_next does the same, but there two threads hand each slot to each other. Here, the worker's own
 * thread calls the function. Returns when the last call has returned, with the codes of lockstep_worker_next.
 * LOCKSTEP_DEADLINE_EXCEEDED: the run is not over; call again. With a timeout of 0, that is the result, and the
 * function is never called. LOCKSTEP_FAILED_PRECONDITION also means that the function left its slot open. */
int lockstep_worker_run(lockstep_id worker, double timeout_seconds, lockstep_slot_function function, void* context);

/* Get the indices and the seed of any slot, to prepare batches ahead of time. Writes at most `capacity` indices and
 * sets `count` to their number. Returns LOCKSTEP_FAILED_PRECONDITION before the first slot, and LOCKSTEP_OUT_OF_RANGE
 * beyond the last epoch. */
int lockstep_worker_indices(lockstep_id worker, int64_t step, int64_t index, int64_t* indices, size_t capacity,
                            size_t* count);
int lockstep_worker_seed(lockstep_id worker, int64_t step, int64_t index, uint64_t* seed);
/* Gets the run's configuration in text format. Returns LOCKSTEP_FAILED_PRECONDITION before the first slot. */
int lockstep_worker_spec(lockstep_id worker, const char** text);

/* Get the digests of this worker's initial values and of the values that a worker brought for the run, as 64
 * hexadecimal digits, or as empty text if there are none. Both may be null. Returns LOCKSTEP_FAILED_PRECONDITION before
 * the first slot. */
int lockstep_worker_initial_values(lockstep_id worker, const char** own, const char** of_run);

/* Asks the chief to end the run, for all workers, when the step in progress is committed. A slot of that step is still
 * wanted and must be finished. Returns LOCKSTEP_UNAVAILABLE if there is no session at the moment. */
int lockstep_worker_end(lockstep_id worker, const char* reason);
/* Leaves the run, which continues without this worker. A slot that the program holds stays open until it is done. */
int lockstep_worker_stop(lockstep_id worker);
/* Stops the worker, abandons an open slot and waits briefly for the library's threads. This invalidates the slot's
 * pointers. A call to lockstep_worker_next in another thread returns LOCKSTEP_CANCELLED. */
int lockstep_worker_free(lockstep_id worker);

/* The results of the open slot, in this order: loss, weight and metrics, update ops, gradients, done. The functions
 * return LOCKSTEP_FAILED_PRECONDITION if no slot is open or a call is out of order. */

/* Reports the mean loss of the batch, once. LOCKSTEP_CANCELLED means that the slot is no longer wanted; drop it. */
int lockstep_slot_loss(lockstep_id worker, float loss);
/* Sets the slot's weight in its step, such as its number of tokens. At most once per slot. The weight must be finite
 * and at least 0, and defaults to 1. Gradients and loss remain those of the batch's mean. The step applies their
 * weighted mean over its slots, and fails the run if all weights are 0. The weight must depend only on the slot. */
int lockstep_slot_weight(lockstep_id worker, float weight);
/* Reports a human-readable metric, such as an accuracy. The status and the event file show its mean over the slots of a
 * step that report it, weighted by the slots' weights. The event file has it at the same steps as the loss. A step may
 * have at most 32 names of at most 200 bytes. Others are ignored. */
int lockstep_slot_metric(lockstep_id worker, const char* name, float value);
/* Requests that the run end when this slot's step is committed. Whether it is called must depend only on the slot. */
int lockstep_slot_end_run(lockstep_id worker);
/* Reports the value of update op `op`, which has `count` elements. Once for each op. */
int lockstep_slot_update(lockstep_id worker, size_t op, const float* value, size_t count);
/* Does the same for a variable that is not float32. `dtype` is the type of the elements: "int32", "int64", "uint8" or
 * "bool" (bytes, 0 or 1). It must be the variable's. */
int lockstep_slot_update_integers(lockstep_id worker, size_t op, const char* dtype, const void* value, size_t count);
/* Gets the memory for the gradient of trainable variable number `variable`: row-major, aligned to 64 bytes,
 * uninitialized. The pointer stays the same until lockstep_slot_ready. */
int lockstep_slot_gradient(lockstep_id worker, size_t variable, float** gradient);
/* Announces that the gradient in lockstep_slot_gradient's memory is final and may be sent. Once for each trainable
 * variable, after the loss and all update ops. */
int lockstep_slot_ready(lockstep_id worker, size_t variable);
/* Announces that the slot has all results. LOCKSTEP_INVALID_ARGUMENT names the first missing one; the slot then stays
 * open. */
int lockstep_slot_done(lockstep_id worker);
/* Abandons the slot. If the slot is still wanted, the worker opens a new session, and the slot is computed again. */
int lockstep_slot_drop(lockstep_id worker);
/* Sets `wanted` to 1 while the slot is wanted. */
int lockstep_slot_wanted(lockstep_id worker, int* wanted);

/* ---------------------------------------------------------------------------------------------------------------------
 * Functions that read without a session. */

/* Reads a running chief's variables, optimizer state and averages, all at the same step. Reads the given names, or
 * everything if `name_count` is 0. */
int lockstep_read(const char* master, const char* const* names, size_t name_count, double timeout_seconds,
                  lockstep_id* tensors);
/* Reads a checkpoint, a logdir's newest checkpoint, or a file of weights (.safetensors, .npz). The step is -1 if it has
 * none. */
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

/* A tensor's pointers are valid until lockstep_tensors_free. */
int lockstep_tensors_count(lockstep_id tensors, size_t* count, int64_t* step);
int lockstep_tensors_get(lockstep_id tensors, size_t index, lockstep_tensor* tensor);
int lockstep_tensors_free(lockstep_id tensors);

/* Gets the digest of a checkpoint or of a logdir's newest one, as 64 hexadecimal digits, and its path. Either may be
 * null. */
int lockstep_digest(const char* path, const char** digest, const char** checkpoint);
/* Gets the RunStatus (proto/lockstep/v1/status.proto) of a running chief, in JSON. LOCKSTEP_OUT_OF_RANGE means that the
 * run is over according to its address file. */
int lockstep_status(const char* master, double timeout_seconds, const char** json);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LOCKSTEP_CAPI_LOCKSTEP_H_ */
