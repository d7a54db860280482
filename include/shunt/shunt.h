/* Shunt for C, and for languages that call C: runs tensor graphs and language models on the devices of a machine.
 *
 * Open a runtime. For a graph of your own, build it and create a computation; then write inputs, run and read outputs.
 * For a language model, open its file and a session, and generate text. Enums and the functions of ops expand from the
 * tables in ops/. docs/library.md and examples/c show how to use them.
 *
 * A function that can fail takes a shunt_error, which may be NULL. It returns a code (SHUNT_OK is 0), or NULL on error.
 * Building a graph reports no errors: creating the computation returns the first one. An object serves one thread at a
 * time. Text that a function returns lives as long as the object it came from.
 *
 * Objects may be closed in any order, because they share ownership of what they use. Devices live until the last object
 * that runs on them is closed. A device that is still busy then has two seconds to finish; what it may touch stays
 * allocated after that. Constants must stay valid until their graph or computation is freed, and a callback's `user`
 * until the last object that may call it is closed.
 */
#ifndef SHUNT_SHUNT_H
#define SHUNT_SHUNT_H

#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC system_header /* the tables take __VA_OPT__, which C before C23 has as an extension */
#endif

#include <stddef.h>
#include <stdint.h>

#include "ops/expand.h"
#include "shunt/tables.h"

#if defined(__GNUC__)
#define SHUNT_API __attribute__((visibility("default")))
#else
#define SHUNT_API
#endif

/* NOLINTBEGIN(readability-identifier-naming, modernize-use-using): names and types as C has them */
/* Values outside an enum are rejected at run time. In C++ they are undefined unless the enum has an underlying type. */
#ifdef __cplusplus
#define SHUNT_ENUM_TYPE : unsigned
extern "C" {
#else
#define SHUNT_ENUM_TYPE
#endif

/* SHUNT_OK, then SHUNT_INVALID, SHUNT_UNSUPPORTED, SHUNT_OUT_OF_MEMORY, ...: a code for each row of SHUNT_ERROR_CODES.
 */
typedef enum shunt_code SHUNT_ENUM_TYPE {
  SHUNT_OK = 0,
#define SHUNT_CODE(name, c_name, meaning) SHUNT_##c_name,
  SHUNT_ERROR_CODES(SHUNT_CODE)
#undef SHUNT_CODE
} shunt_code;

/* Why a call failed: what happened, to what, with which numbers. Longer messages are truncated. */
typedef struct shunt_error {
  shunt_code code;
  char message[1024];
} shunt_error;

/* SHUNT_DTYPE_F32, SHUNT_DTYPE_F16, ... */
typedef enum shunt_dtype SHUNT_ENUM_TYPE {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_DTYPE_##name,
#include "ops/dtypes.def"
  SHUNT_DTYPE_COUNT
} shunt_dtype;

/* SHUNT_OP_linear, ... */
typedef enum shunt_op SHUNT_ENUM_TYPE {
#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) SHUNT_OP_##name,
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) SHUNT_OP_##name,
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) SHUNT_OP_##name,
#include "ops/ops.def"
  SHUNT_OP_COUNT
} shunt_op;

/* SHUNT_ATTR_epsilon, ... */
typedef enum shunt_attr SHUNT_ENUM_TYPE {
#define SHUNT_ATTRIBUTE(name, type, default_value, meaning) SHUNT_ATTR_##name,
#include "ops/attributes.def"
  SHUNT_ATTR_COUNT
} shunt_attr;

/* Extents, outermost first. The rank is 0 to 4. */
typedef struct shunt_shape {
  uint32_t rank;
  uint32_t extents[4];
} shunt_shape;

/* A tensor of the graph being built. */
typedef struct shunt_tensor {
  uint32_t id;
} shunt_tensor;
#define SHUNT_NO_TENSOR_ID 0xFFFFFFFFu

/* The kernel of a custom op (shunt_kernel_create). */
typedef struct shunt_kernel shunt_kernel;

typedef struct shunt_bytes {
  const void* data;
  size_t count;
} shunt_bytes;

/* One attribute of an op, made by shunt_attr_NAME(value). Attributes that are not given have their defaults. */
typedef struct shunt_attribute {
  shunt_attr attr;
  union {
    float f32;
    uint32_t u32;
    shunt_dtype dtype;
    shunt_shape shape;
    const shunt_kernel* user_kernel;
    shunt_bytes bytes;
  } value;
} shunt_attribute;

typedef struct shunt_attributes {
  const shunt_attribute* values;
  size_t count;
} shunt_attributes;

/* The number of valid rows of tensors, for graphs whose inputs have an extent. All zeros for other graphs. */
typedef enum shunt_extent SHUNT_ENUM_TYPE { SHUNT_FIXED = 0, SHUNT_TOKENS = 1, SHUNT_OUTPUTS = 2 } shunt_extent;
typedef struct shunt_parameters {
  uint32_t tokens;
  uint32_t outputs;
  uint32_t positions; /* no token sees a position at or above it; 0: unknown */
} shunt_parameters;

typedef struct shunt_runtime shunt_runtime;

/* Receives messages for the user during a run: a device failed and what replaces it, or devices are measured. Called on
 * the thread that made the call. */
typedef void (*shunt_on_notice)(void* user, const char* text);

/* What a long call is doing: SHUNT_PROGRESS_reading_model, SHUNT_PROGRESS_copying_weights, SHUNT_PROGRESS_measuring,
 * SHUNT_PROGRESS_reading_prompt. */
typedef enum shunt_progress_kind SHUNT_ENUM_TYPE {
#define SHUNT_PROGRESS_KIND(kind, name, unit) SHUNT_PROGRESS_##kind,
  SHUNT_PROGRESS_KINDS(SHUNT_PROGRESS_KIND)
#undef SHUNT_PROGRESS_KIND
      SHUNT_PROGRESS_KIND_COUNT
} shunt_progress_kind;

typedef struct shunt_progress {
  shunt_progress_kind kind;
  const char* name; /* "reading the prompt" */
  const char* unit; /* unit of done and total: "bytes", "measurements", "tokens" */
  uint64_t done;
  uint64_t total;  /* at least 1 */
  double fraction; /* done / total */
} shunt_progress;
/* Receives progress on the thread that made the long call, whose object it must not use. `progress` is valid until it
 * returns. */
typedef void (*shunt_on_progress)(void* user, const shunt_progress* progress);

/* Ends long calls: loading a model with it, and calls on all objects that run on a runtime opened with it. Once it is
 * set, a call ends after its current step with SHUNT_INTERRUPTED. A generation ends with SHUNT_STOP_INTERRUPTED and the
 * text so far. It stays set until it is cleared. Any thread or a signal handler may set it. */
typedef struct shunt_interrupt shunt_interrupt;
SHUNT_API shunt_interrupt* shunt_interrupt_new(void);
/* Frees the caller's handle. Objects that use the interrupt keep what they need. */
SHUNT_API void shunt_interrupt_free(shunt_interrupt* interrupt);
SHUNT_API void shunt_interrupt_set(shunt_interrupt* interrupt);
SHUNT_API void shunt_interrupt_clear(shunt_interrupt* interrupt);
/* Returns 1 if it is set, else 0. */
SHUNT_API int shunt_interrupt_is_set(const shunt_interrupt* interrupt);

#include "shunt/shunt_devices.h"

/* Initialize to all zeros. docs/failures.md explains faults, audits, strict and timeouts. */
typedef struct shunt_runtime_options {
  uint32_t threads;    /* CPU threads; 0: one per core */
  const char* devices; /* ids or API names, by preference, with commas; emulated devices by id; NULL: all others */
  const char* machine; /* a file that describes a machine to simulate (docs/machines.md); NULL: this machine */
  const char* budgets; /* memory that may be used, such as "vulkan:0=4GiB, cuda:0=512MiB"; NULL, "auto": what is free */
  const char* faults;  /* faults to inject, such as "vulkan:0 lost at op 250"; NULL: the variable SHUNT_FAULTS */
  uint32_t timeout_ms; /* time after which a program counts as hung; 0: 30 s plus 100 times the predicted time */
  uint32_t audit;      /* n: in every n-th run of a plan the reference computes one op again; 0: no audits */
  int strict;          /* 1: return an error if a device fails or the preferred one cannot run an op */
  int uncalibrated;    /* 1: use priors only; measurements are neither used nor made */
  int trace;           /* 1: record what runs, for the functions shunt_trace_...() */
  shunt_on_notice on_notice;             /* may be NULL */
  void* user;                            /* passed to on_notice and on_progress */
  const shunt_device_selector* selector; /* selects devices instead of `devices`; NULL: by name */
  shunt_on_progress on_progress;         /* may be NULL */
  shunt_interrupt* interrupt;            /* ends calls on objects of this runtime; may be NULL */
} shunt_runtime_options;

typedef struct shunt_tensor_info {
  const char* name;
  shunt_dtype dtype;
  shunt_shape shape;
  uint64_t bytes;
} shunt_tensor_info;

typedef struct shunt_graph shunt_graph;
typedef struct shunt_computation shunt_computation;

/* Returns the version, such as "1.2.3". */
SHUNT_API const char* shunt_version(void);
/* "invalid", "out_of_memory", ... */
SHUNT_API const char* shunt_code_name(shunt_code code);

/* Finds and starts the devices; `options` may be NULL. */
SHUNT_API shunt_runtime* shunt_runtime_open(const shunt_runtime_options* options, shunt_error* error);
SHUNT_API void shunt_runtime_close(shunt_runtime* runtime);
/* The devices in use, in order of preference, then GPUs that may be used through other APIs; NULL for an index past the
   last. */
SHUNT_API size_t shunt_device_count(const shunt_runtime* runtime);
SHUNT_API const char* shunt_device_id(const shunt_runtime* runtime, size_t index);
SHUNT_API const char* shunt_device_name(const shunt_runtime* runtime, size_t index);

/* The recording of a runtime with the option `trace`: what ran, when, where and why, with predicted times
 * (docs/telemetry.md). Text lives until the same function is called again. The summary has sums by device, op and link,
 * as text or JSON; the lines are events, one JSON object each. shunt_trace_write() writes a file that `shunt report`
 * reads; it appears complete or not at all. shunt_trace_clear() drops the events so far. */
SHUNT_API const char* shunt_trace_summary(shunt_runtime* runtime);
SHUNT_API const char* shunt_trace_summary_json(shunt_runtime* runtime);
SHUNT_API const char* shunt_trace_lines(shunt_runtime* runtime);
SHUNT_API shunt_code shunt_trace_write(const shunt_runtime* runtime, const char* path, shunt_error* error);
SHUNT_API void shunt_trace_clear(shunt_runtime* runtime);

SHUNT_API shunt_graph* shunt_graph_new(void);
/* REQUIRES: no computation has taken over the graph. */
SHUNT_API void shunt_graph_free(shunt_graph* graph);
/* Adds an input, which the caller writes before each run. */
SHUNT_API shunt_tensor shunt_input(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape,
                                   shunt_extent extent);
/* Adds a contiguous tensor in the caller's memory, which must stay unchanged until the graph or its computation is
 * freed. */
SHUNT_API shunt_tensor shunt_constant(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape,
                                      const void* data, uint64_t bytes);
/* Adds state, which is zero at first and lives from one run to the next. An op that changes it returns the new version.
 */
SHUNT_API shunt_tensor shunt_state(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape);
/* Adds any op by its enum. Inputs are in the order of the table; SHUNT_NO_TENSOR_ID is an absent optional input. */
SHUNT_API shunt_tensor shunt_add_node(shunt_graph* graph, shunt_op op, const shunt_tensor* inputs, size_t count,
                                      shunt_attributes attributes);
/* Custom ops: SHUNT_OP_custom with shunt_attr_code(kernel) and, if the kernel takes any, shunt_attr_arguments(bytes).
 * shunt/kernel.h explains kernels. shunt_kernel_prelude() is the text that precedes their GLSL. */
typedef struct shunt_operand {
  shunt_dtype dtype;
  shunt_shape shape;
  shunt_extent extent; /* what counts the valid entries of the first axis */
} shunt_operand;

typedef struct shunt_kernel_use {
  const shunt_operand* inputs;
  size_t input_count;
  shunt_bytes arguments;
} shunt_kernel_use;

/* The work of one call of a kernel's CPU function: items begin to end - 1. */
typedef struct shunt_kernel_work {
  shunt_kernel_use use;
  shunt_operand result;
  const void* const* input_data;
  void* result_data;
  shunt_parameters parameters;
  uint64_t begin;
  uint64_t end;
} shunt_kernel_work;

/* Initialize to all zeros. The functions are called from any thread while the kernel or a graph with it lives. `result`
 * and `cpu` return NULL, or an error message that stays valid until their next call on that thread. */
typedef struct shunt_kernel_description {
  const char* name;
  const char* glsl; /* at most one of the two */
  const uint32_t* spirv;
  size_t spirv_words;
  uint32_t inputs;
  uint32_t argument_bytes;
  const char* (*result)(const shunt_kernel_use* use, shunt_operand* result, void* user);    /* required */
  const char* (*cpu)(const shunt_kernel_work* work, void* user);                            /* NULL: not on the CPU */
  uint64_t (*items)(const shunt_kernel_use* use, const shunt_operand* result, void* user);  /* NULL: elements */
  uint64_t (*groups)(const shunt_kernel_use* use, const shunt_operand* result, void* user); /* NULL: by items */
  double flops_per_item;                                                                    /* 0: 4 */
  void* user;
} shunt_kernel_description;

/* Copies the description, except what `user` points to. */
SHUNT_API shunt_kernel* shunt_kernel_create(const shunt_kernel_description* description, shunt_error* error);
/* Frees the caller's handle. Graphs and computations with the kernel keep what they need. */
SHUNT_API void shunt_kernel_free(shunt_kernel* kernel);
SHUNT_API const char* shunt_kernel_prelude(void);

/* Makes the tensor an output. Outputs are numbered in the order of these calls. */
SHUNT_API void shunt_output(shunt_graph* graph, shunt_tensor tensor);
/* Returns a tensor's shape; rank 0 after an error. */
SHUNT_API shunt_shape shunt_shape_of(const shunt_graph* graph, shunt_tensor tensor);

/* Initialize to all zeros. */
typedef struct shunt_computation_options {
  const char* strategy; /* as for a session, except "layers" */
  const char* numerics; /* as for a session; NULL: "exact" */
  int profile;          /* 1: with a trace, record the time of each op in a sample of the runs */
} shunt_computation_options;

/* Takes over the graph, even if the call fails. `options` may be NULL. */
SHUNT_API shunt_computation* shunt_computation_new(const shunt_runtime* runtime, shunt_graph* graph,
                                                   const shunt_computation_options* options, shunt_error* error);
SHUNT_API void shunt_computation_free(shunt_computation* computation);
SHUNT_API shunt_code shunt_write(shunt_computation* computation, const char* input, const void* data, uint64_t bytes,
                                 shunt_error* error);
SHUNT_API shunt_code shunt_run(shunt_computation* computation, shunt_error* error);
SHUNT_API shunt_code shunt_run_with(shunt_computation* computation, shunt_parameters parameters, shunt_error* error);
SHUNT_API shunt_code shunt_read(const shunt_computation* computation, size_t output, void* data, uint64_t bytes,
                                shunt_error* error);
SHUNT_API size_t shunt_output_count(const shunt_computation* computation);
SHUNT_API shunt_code shunt_output_info(const shunt_computation* computation, size_t output, shunt_tensor_info* info,
                                       shunt_error* error);
/* Explain where each op runs and why, as text and as JSON. */
SHUNT_API const char* shunt_explain(shunt_computation* computation);
SHUNT_API const char* shunt_explain_json(shunt_computation* computation);

/* Functions of contiguous F32 arrays in the caller's memory. Each call runs on the device measured to be fastest for
 * its size. A result may overlap inputs; after an error it is unchanged. */
typedef struct shunt_arrays shunt_arrays;

/* Options of a call. NULL instead of it: any device, no timeout. */
typedef struct shunt_array_call {
  const char* devices; /* comma-separated ids or API names; a single device never falls back; NULL: all in use */
  uint64_t timeout_us; /* for the whole call; 0: none */
} shunt_array_call;

/* How a call was computed. A call that needs no report takes NULL. Text lives until the next call. */
typedef struct shunt_array_run {
  const char* device;   /* the device's id; "" if there was nothing to compute */
  const char* reason;   /* why it was chosen: "measured", "fallback", ... */
  const char* failures; /* failures of the devices tried before; "": none */
  double us;
} shunt_array_run;

SHUNT_API shunt_arrays* shunt_arrays_new(const shunt_runtime* runtime, shunt_error* error);
SHUNT_API void shunt_arrays_free(shunt_arrays* arrays);
SHUNT_API shunt_code shunt_arrays_add(shunt_arrays* arrays, const float* a, const float* b, float* out, size_t count,
                                      const shunt_array_call* call, shunt_array_run* run, shunt_error* error);
SHUNT_API shunt_code shunt_arrays_multiply(shunt_arrays* arrays, const float* a, const float* b, float* out,
                                           size_t count, const shunt_array_call* call, shunt_array_run* run,
                                           shunt_error* error);
/* a [rows, inner], b [inner, columns] -> out [rows, columns] */
SHUNT_API shunt_code shunt_arrays_matmul(shunt_arrays* arrays, const float* a, const float* b, float* out, size_t rows,
                                         size_t inner, size_t columns, const shunt_array_call* call,
                                         shunt_array_run* run, shunt_error* error);
SHUNT_API shunt_code shunt_arrays_dot(shunt_arrays* arrays, const float* a, const float* b, float* out, size_t count,
                                      const shunt_array_call* call, shunt_array_run* run, shunt_error* error);
SHUNT_API shunt_code shunt_arrays_sum(shunt_arrays* arrays, const float* x, float* out, size_t count,
                                      const shunt_array_call* call, shunt_array_run* run, shunt_error* error);
/* Computes the softmax of each row of x [rows, columns]. */
SHUNT_API shunt_code shunt_arrays_softmax(shunt_arrays* arrays, const float* x, float* out, size_t rows, size_t columns,
                                          const shunt_array_call* call, shunt_array_run* run, shunt_error* error);
/* Explains what is known so far: each device's time by function and size, and which devices are quarantined and why. */
SHUNT_API const char* shunt_arrays_explain(shunt_arrays* arrays);

/* DLPack (https://dmlc.github.io/dlpack): `tensor` is a contiguous DLManagedTensor* whose memory the CPU can address.
 * The call takes it over, even if it fails. Its deleter is called when it is no longer needed. */
SHUNT_API shunt_tensor shunt_constant_dlpack(shunt_graph* graph, const char* name, void* tensor);
SHUNT_API shunt_code shunt_write_dlpack(shunt_computation* computation, const char* input, void* tensor,
                                        shunt_error* error);
/* Returns a copy of an output as a DLManagedTensor*, which the caller frees with its deleter; NULL on error. */
SHUNT_API void* shunt_read_dlpack(const shunt_computation* computation, size_t output, shunt_error* error);

/* A language model from a GGUF file. All calls on it are safe from many threads. */
typedef struct shunt_model shunt_model;
/* Sequences of tokens over a model, with their KV cache. */
typedef struct shunt_session shunt_session;

typedef struct shunt_model_info {
  const char* name; /* the model's name in the file; "" if it has none */
  const char* architecture;
  const char* chat_format; /* NULL if it has no known one */
  const char* why_no_chat; /* the reason why chat_format is NULL; else NULL */
  uint32_t context_length; /* the context length in tokens that it was trained with */
  uint32_t vocabulary;     /* tokens are 0 to vocabulary - 1 */
  uint64_t weight_bytes;
  int32_t bos;  /* the token that begins a text; -1: none */
  int adds_bos; /* 1: a prompt for this model begins with it */
} shunt_model_info;

/* Initialize to all zeros. */
typedef struct shunt_load_options {
  int read_ahead; /* 1: read all weights into memory now, so that the first steps do not wait for the disk */
  shunt_on_progress on_progress; /* receives the progress of the read-ahead; may be NULL */
  void* user;                    /* passed to on_progress */
  shunt_interrupt* interrupt;    /* ends the read-ahead; may be NULL */
} shunt_load_options;

/* Opens a GGUF file, or a split model by any of its parts. `options` may be NULL. */
SHUNT_API shunt_model* shunt_model_open(const char* path, shunt_error* error);
SHUNT_API shunt_model* shunt_model_open_with(const char* path, const shunt_load_options* options, shunt_error* error);
SHUNT_API void shunt_model_close(shunt_model* model);
SHUNT_API shunt_code shunt_model_describe(const shunt_model* model, shunt_model_info* info, shunt_error* error);
/* Returns 1 if this token ends the model's output, else 0. */
SHUNT_API int shunt_is_end_token(const shunt_model* model, int32_t token);

/* The three functions below write up to `capacity` tokens or bytes and set `count` to the full number. With capacity 0
 * and NULL they only count.
 *
 * Encodes UTF-8. `flags` combine SHUNT_ADD_BOS (unless the text begins with it), SHUNT_ADD_EOS and SHUNT_PARSE_SPECIAL
 * (parse control tokens in the text). */
enum { SHUNT_ADD_BOS = 1, SHUNT_ADD_EOS = 2, SHUNT_PARSE_SPECIAL = 4 };
SHUNT_API shunt_code shunt_tokenize(const shunt_model* model, const char* text, uint32_t flags, int32_t* tokens,
                                    size_t capacity, size_t* count, shunt_error* error);
/* Decodes tokens. If there is room, a 0 follows the text and is not counted. `flags` combine SHUNT_SHOW_CONTROL (write
 * control tokens by name) and SHUNT_KEEP_PREFIX (keep the leading space that shunt_tokenize() adds). */
enum { SHUNT_SHOW_CONTROL = 1, SHUNT_KEEP_PREFIX = 2 };
SHUNT_API shunt_code shunt_detokenize(const shunt_model* model, const int32_t* tokens, size_t token_count,
                                      uint32_t flags, char* text, size_t capacity, size_t* count, shunt_error* error);
/* Encodes a conversation up to where the model's reply begins. `options` may be NULL. */
typedef struct shunt_message {
  const char* role; /* "system", "user" or "assistant" */
  const char* content;
} shunt_message;
typedef struct shunt_chat_options {
  const char* format;    /* a format's name; the error for an unknown one lists them; NULL: the model's own */
  const int32_t* so_far; /* an earlier conversation, ending with a reply, that the messages continue; NULL: none */
  size_t so_far_count;
  int no_reply_opening; /* 1: end with the last message */
} shunt_chat_options;
SHUNT_API shunt_code shunt_apply_chat_template(const shunt_model* model, const shunt_message* messages,
                                               size_t message_count, const shunt_chat_options* options, int32_t* tokens,
                                               size_t capacity, size_t* count, shunt_error* error);

/* Initialize with shunt_session_defaults(). */
typedef struct shunt_session_options {
  uint32_t context; /* tokens that each sequence can hold; 0: the model's own, at most 8192 and what fits */
  uint32_t max_sequences;
  uint32_t max_batch_tokens; /* in one step, at most 4096; 0: chosen for each prompt */
  shunt_dtype cache_dtype;   /* F16, BF16, F32 or Q8_0 */
  /* NULL or "auto": by predicted time; "gpu" or "cpu": the first GPU, or the CPU, except for ops it cannot run;
   * "layers": layers in turn on the devices. To use a single device, open the runtime with that device only. */
  const char* strategy;
  const char* numerics; /* how exactly products are computed: "exact", "auto" or "fast"; NULL: "auto" */
  double margin; /* replace the first device if it takes over 1 + margin times as long; < 0: 0.05, or 1 for priors */
  int profile;   /* 1: with a trace, record the time of each op in a sample of the steps */
} shunt_session_options;
SHUNT_API shunt_session_options shunt_session_defaults(void);

/* `options` may be NULL. */
SHUNT_API shunt_session* shunt_session_open(const shunt_model* model, const shunt_runtime* runtime,
                                            const shunt_session_options* options, shunt_error* error);
SHUNT_API void shunt_session_close(shunt_session* session);
SHUNT_API uint32_t shunt_session_context(const shunt_session* session);
/* The tokens of a sequence, valid until the session's next call; NULL and 0 for an unknown sequence. */
SHUNT_API const int32_t* shunt_session_tokens(const shunt_session* session, uint32_t sequence, size_t* count);

/* Appends tokens to their sequences in one step. After an error all sequences are as before. */
typedef struct shunt_batch_token {
  uint32_t sequence;
  int32_t token;
  int wants_logits;
} shunt_batch_token;
SHUNT_API shunt_code shunt_session_decode(shunt_session* session, const shunt_batch_token* batch, size_t count,
                                          shunt_error* error);
/* Appends tokens to one sequence in as many steps as needed; the last token wants logits. Steps before an error keep
 * their tokens. */
SHUNT_API shunt_code shunt_session_prefill(shunt_session* session, uint32_t sequence, const int32_t* tokens,
                                           size_t count, shunt_error* error);
/* The logits [vocabulary] of the `index`-th token that wanted them, valid until the session's next call; NULL past the
 * last, and after shunt_generate() if the last token was chosen from the best logits only. */
SHUNT_API const float* shunt_session_logits(const shunt_session* session, size_t index);
/* Drops the tokens from position `length` on. */
SHUNT_API shunt_code shunt_session_truncate(shunt_session* session, uint32_t sequence, size_t length,
                                            shunt_error* error);

/* Initialize with shunt_generate_defaults(). The filters apply in this order: repetition penalty, top-k, top-p, min-p,
 * temperature. */
typedef struct shunt_generate_options {
  uint32_t max_tokens;      /* 0: until the end token or a full context */
  const char* const* stops; /* texts that end generation; they are not part of the output */
  size_t stop_count;
  int ignore_end; /* 1: continue after end tokens */
  uint32_t sequence;
  int greedy;             /* 1: take the best token after the repetition penalty; the other filters are ignored */
  float temperature;      /* divides the logits; 0: greedy */
  uint32_t top_k;         /* keeps the k most likely tokens; 0: all */
  float top_p;            /* keeps the fewest most likely tokens with this total probability; 1: all */
  float min_p;            /* keeps tokens at least this many times as likely as the best; 0: all */
  float repeat_penalty;   /* divides positive and multiplies negative logits of recent tokens; 1: off */
  uint32_t repeat_last_n; /* how many tokens count as recent; 0: none */
  uint64_t seed;          /* gives the same result on every machine */
} shunt_generate_options;
SHUNT_API shunt_generate_options shunt_generate_defaults(void);

/* Receives new text in whole characters: `bytes` bytes and a 0 after them. A return value other than 0 ends generation.
 */
typedef int (*shunt_on_text)(void* user, const char* text, size_t bytes);

typedef enum shunt_stop SHUNT_ENUM_TYPE {
  SHUNT_STOP_END_TOKEN = 0,
  SHUNT_STOP_STRING,
  SHUNT_STOP_LENGTH,
  SHUNT_STOP_CONTEXT_FULL,
  SHUNT_STOP_INTERRUPTED /* shunt_on_text or a shunt_interrupt ended it */
} shunt_stop;
/* "end token", "context full", ... */
SHUNT_API const char* shunt_stop_name(shunt_stop stop);

/* The result of a generation. Its text and tokens are valid until the session generates again or is closed. */
typedef struct shunt_generation {
  const char* text;
  size_t text_bytes;
  const int32_t* tokens; /* the generated tokens without the end token */
  size_t token_count;
  shunt_stop stop;
  uint32_t prompt_tokens;
  uint32_t steps;    /* decode steps: tokens computed one at a time */
  double prompt_s;   /* time to the first logits */
  double generate_s; /* time after them */
} shunt_generation;

/* Appends the prompt and the generated tokens to the sequence, so another prompt may follow. A text that begins its
 * sequence gets a BOS if the model takes one; control tokens in the text are parsed. A context that fills up after the
 * prompt is not an error. `options`, `on_text` and `generation` may be NULL. */
SHUNT_API shunt_code shunt_generate(shunt_session* session, const char* prompt, const shunt_generate_options* options,
                                    shunt_on_text on_text, void* user, shunt_generation* generation,
                                    shunt_error* error);
SHUNT_API shunt_code shunt_generate_from(shunt_session* session, const int32_t* prompt, size_t count,
                                         const shunt_generate_options* options, shunt_on_text on_text, void* user,
                                         shunt_generation* generation, shunt_error* error);

#ifdef __cplusplus
}
#endif

/* shunt_attr_epsilon(1e-6f), ... */
typedef float shunt_type_f32;
typedef uint32_t shunt_type_u32;
typedef shunt_dtype shunt_type_dtype;
typedef shunt_shape shunt_type_shape;
typedef const shunt_kernel* shunt_type_user_kernel;
typedef shunt_bytes shunt_type_bytes;
#define SHUNT_ATTRIBUTE(name, type, default_value, meaning)                      \
  static inline shunt_attribute shunt_attr_##name(shunt_type_##type new_value) { \
    shunt_attribute attribute;                                                   \
    attribute.attr = SHUNT_ATTR_##name;                                          \
    attribute.value.type = new_value;                                            \
    return attribute;                                                            \
  }
#include "ops/attributes.def"

/* One function for each row of ops/ops.def: shunt_linear(graph, x, weight, SHUNT_DEFAULTS), ... */
#define SHUNT_C_PARAMETER(name) shunt_tensor name
#define SHUNT_C_ID(name) name
#define SHUNT_C_PARAMETERS(...) SHUNT_EACH_COMMA(SHUNT_C_PARAMETER, __VA_ARGS__)
#define SHUNT_C_IDS(...) SHUNT_EACH_COMMA(SHUNT_C_ID, __VA_ARGS__)
#define SHUNT_C_FUNCTION(name, inputs)                                                                                 \
  static inline shunt_tensor shunt_##name(shunt_graph* in_graph, SHUNT_C_PARAMETERS inputs,                            \
                                          shunt_attributes with_attributes) {                                          \
    const shunt_tensor operands[] = {SHUNT_C_IDS inputs};                                                              \
    return shunt_add_node(in_graph, SHUNT_OP_##name, operands, sizeof operands / sizeof operands[0], with_attributes); \
  }
#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) SHUNT_C_FUNCTION(name, inputs)
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) SHUNT_C_FUNCTION(name, inputs)
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) SHUNT_C_FUNCTION(name, inputs)
#define SHUNT_CUSTOM(name, inputs, required, attributes, rule, family)
#include "ops/ops.def"
#undef SHUNT_C_FUNCTION

/* An absent optional input. */
static inline shunt_tensor shunt_none(void) {
  shunt_tensor none;
  none.id = SHUNT_NO_TENSOR_ID;
  return none;
}

#ifndef __cplusplus
/* SHUNT_WITH(shunt_attr_epsilon(1e-6f), ...): valid until the end of the enclosing block. */
#define SHUNT_WITH(...)                                       \
  ((shunt_attributes){(const shunt_attribute[]){__VA_ARGS__}, \
                      sizeof((const shunt_attribute[]){__VA_ARGS__}) / sizeof(shunt_attribute)})
#define SHUNT_DEFAULTS ((shunt_attributes){NULL, 0})
/* SHUNT_SHAPE(2, 3) */
#define SHUNT_SHAPE(...) ((shunt_shape){sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), {__VA_ARGS__}})
#endif

/* NOLINTEND(readability-identifier-naming, modernize-use-using) */

#endif /* SHUNT_SHUNT_H */
