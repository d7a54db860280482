/* Shunt for C, and for all languages that call C: graphs of tensors and language models, computed on whatever devices a
 * machine has.
 *
 * Open a runtime. For a graph of your own, build it from inputs, constants and ops, create a computation from it, then
 * write inputs, run, and read outputs as often as you like. For a language model, open its file and a session on it,
 * and generate text. Enums and the functions of ops expand from the tables in ops/; docs/library.md and examples/c show
 * how it is used.
 *
 * A function that can fail takes a shunt_error, which may be NULL, and answers a code or NULL; SHUNT_OK is 0. Building
 * a graph never fails at once: the first error stays with the graph, and creating the computation reports it. An object
 * is used by one thread at a time. Text that a function answers lives as long as the object it was asked from.
 *
 * Objects may be closed in any order: a session keeps what it uses of its model and of its runtime, computations and
 * arrays keep what they use of their runtime, and a graph what it uses of a kernel. Devices end with the last object
 * that runs on them. A device that still works then is given up to two seconds to end, and what it may touch stays
 * after that. Memory of the caller's is not kept: constants stay where they are until their graph or its computation is
 * freed, and what a callback gets as `user` until the last object that may call it is closed.
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
/* Numbers that are no row of an enum are refused; C++ leaves them undefined unless the type under the enum is named. */
#ifdef __cplusplus
#define SHUNT_ENUM_TYPE : unsigned
extern "C" {
#else
#define SHUNT_ENUM_TYPE
#endif

typedef enum shunt_code SHUNT_ENUM_TYPE {
  SHUNT_OK = 0,
  SHUNT_INVALID,
  SHUNT_UNSUPPORTED,
  SHUNT_OUT_OF_MEMORY,
  SHUNT_DEVICE_LOST,
  SHUNT_TIMED_OUT,
  SHUNT_IO,
  SHUNT_INTERNAL,
  SHUNT_INTERRUPTED /* by a shunt_interrupt: the call ended between two of its steps */
} shunt_code;

/* Why a call failed: what happened, to what, with which numbers. Longer messages are cut. */
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

/* Extents, outermost first; rank is 0 to 4. */
typedef struct shunt_shape {
  uint32_t rank;
  uint32_t extents[4];
} shunt_shape;

/* A tensor of the graph that is being built. */
typedef struct shunt_tensor {
  uint32_t id;
} shunt_tensor;
#define SHUNT_NO_TENSOR_ID 0xFFFFFFFFu

/* A kernel of the caller's as an op of graphs (shunt_kernel_create). */
typedef struct shunt_kernel shunt_kernel;

typedef struct shunt_bytes {
  const void* data;
  size_t count;
} shunt_bytes;

/* One attribute of an op; what is not given has its default. Made by shunt_attr_NAME(value). */
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

/* Which rows of tensors are valid, in graphs whose inputs count them; 0 everywhere for other graphs. */
typedef enum shunt_extent SHUNT_ENUM_TYPE { SHUNT_FIXED = 0, SHUNT_TOKENS = 1, SHUNT_OUTPUTS = 2 } shunt_extent;
typedef struct shunt_parameters {
  uint32_t tokens;
  uint32_t outputs;
  uint32_t positions; /* no token sees a position at or above it; 0: not known */
} shunt_parameters;

typedef struct shunt_runtime shunt_runtime;

/* Gets what the user should hear of while something runs: that a device failed, and what happens now. On the thread
 * that runs it. */
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
  const char* unit; /* of the two below: "bytes", "measurements", "tokens" */
  uint64_t done;
  uint64_t total;  /* at least 1 */
  double fraction; /* done / total */
} shunt_progress;
/* On the thread that made the long call, whose object it must not use. `progress` lasts until it returns. */
typedef void (*shunt_on_progress)(void* user, const shunt_progress* progress);

/* Ends long calls: those of all objects that run on a runtime opened with it, and the loading of a model with it. Once
 * it is set, a call ends after its current step with SHUNT_INTERRUPTED, and a generation with SHUNT_STOP_INTERRUPTED
 * and the text so far. It stays set until it is cleared. Any thread may set it, and a signal handler, too. */
typedef struct shunt_interrupt shunt_interrupt;
SHUNT_API shunt_interrupt* shunt_interrupt_new(void);
/* Objects that have it keep what they need. */
SHUNT_API void shunt_interrupt_free(shunt_interrupt* interrupt);
SHUNT_API void shunt_interrupt_set(shunt_interrupt* interrupt);
SHUNT_API void shunt_interrupt_clear(shunt_interrupt* interrupt);
/* 1 where it is set, else 0. */
SHUNT_API int shunt_interrupt_is_set(const shunt_interrupt* interrupt);

#include "shunt/shunt_devices.h"

/* Begin with all zeros. docs/failures.md says more of faults, audits, strict and time-outs. */
typedef struct shunt_runtime_options {
  uint32_t threads;    /* of the CPU; 0: one per core */
  const char* devices; /* ids or API names with commas, by preference; emulated ones by id; NULL: all others */
  const char* machine; /* a file of a machine to simulate in place of this one (docs/machines.md); NULL: none */
  const char* budgets; /* memory that may be used, such as "vulkan:0=4GiB, cuda:0=512MiB"; NULL: what is free */
  const char* faults;  /* that devices are told to have, such as "vulkan:0 lost at op 250"; NULL: SHUNT_FAULTS says */
  uint32_t timeout_ms; /* of a program, until its device counts as hung; 0: 30 s and 100 times what was predicted */
  uint32_t audit;      /* one op of each run of that number is computed again by the reference; 0: none */
  int strict;          /* 1: where a device fails, or the preferred one cannot run an op: an error */
  int uncalibrated;    /* 1: use priors only: measurements are neither used nor made */
  int trace;           /* 1: record what runs, for the functions shunt_trace_...() */
  shunt_on_notice on_notice;             /* may be NULL */
  void* user;                            /* of on_notice and on_progress */
  const shunt_device_selector* selector; /* which devices, in place of `devices`; NULL: by their names */
  shunt_on_progress on_progress;         /* may be NULL */
  shunt_interrupt* interrupt;            /* ends what runs on it; NULL: nothing does */
} shunt_runtime_options;

typedef struct shunt_tensor_info {
  const char* name;
  shunt_dtype dtype;
  shunt_shape shape;
  uint64_t bytes;
} shunt_tensor_info;

typedef struct shunt_graph shunt_graph;
typedef struct shunt_computation shunt_computation;

/* "0.2.0" */
SHUNT_API const char* shunt_version(void);
/* "invalid", "out_of_memory", ... */
SHUNT_API const char* shunt_code_name(shunt_code code);

/* Finds and starts the devices; `options` may be NULL. */
SHUNT_API shunt_runtime* shunt_runtime_open(const shunt_runtime_options* options, shunt_error* error);
SHUNT_API void shunt_runtime_close(shunt_runtime* runtime);
/* The chosen devices, by preference; NULL for an index past the last. */
SHUNT_API size_t shunt_device_count(const shunt_runtime* runtime);
SHUNT_API const char* shunt_device_id(const shunt_runtime* runtime, size_t index);
SHUNT_API const char* shunt_device_name(const shunt_runtime* runtime, size_t index);

/* What ran, when, where and why, and how long it was predicted to take, of a runtime with the option `trace`
 * (docs/telemetry.md). Text lives until the same function is called again. The sums by device, op and link, for people
 * and as JSON; the events, a JSON object on each line; a file that `shunt report` reads, which appears when it is
 * whole, or not at all. Clearing forgets the events so far. */
SHUNT_API const char* shunt_trace_summary(shunt_runtime* runtime);
SHUNT_API const char* shunt_trace_summary_json(shunt_runtime* runtime);
SHUNT_API const char* shunt_trace_lines(shunt_runtime* runtime);
SHUNT_API shunt_code shunt_trace_write(const shunt_runtime* runtime, const char* path, shunt_error* error);
SHUNT_API void shunt_trace_clear(shunt_runtime* runtime);

SHUNT_API shunt_graph* shunt_graph_new(void);
/* Not for a graph that a computation has taken over. */
SHUNT_API void shunt_graph_free(shunt_graph* graph);
/* Written before each run. */
SHUNT_API shunt_tensor shunt_input(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape,
                                   shunt_extent extent);
/* A contiguous tensor in the caller's memory, which stays as it is until the graph or its computation is freed. */
SHUNT_API shunt_tensor shunt_constant(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape,
                                      const void* data, uint64_t bytes);
/* Lives from run to run, zeros at first. An op that changes it answers the new state. */
SHUNT_API shunt_tensor shunt_state(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape);
/* Any op by its enum; inputs in the order of the table, SHUNT_NO_TENSOR_ID for an optional one that is absent. */
SHUNT_API shunt_tensor shunt_add_node(shunt_graph* graph, shunt_op op, const shunt_tensor* inputs, size_t count,
                                      shunt_attributes attributes);
/* A kernel of one's own as an op of graphs: SHUNT_OP_custom with shunt_attr_code(kernel) and, if it takes any,
 * shunt_attr_arguments(bytes). shunt/kernel.h says what it consists of, and shunt_kernel_prelude() what GLSL sees. */
typedef struct shunt_operand {
  shunt_dtype dtype;
  shunt_shape shape;
  shunt_extent extent; /* what counts the valid entries of its first axis */
} shunt_operand;

typedef struct shunt_kernel_use {
  const shunt_operand* inputs;
  size_t input_count;
  shunt_bytes arguments;
} shunt_kernel_use;

/* What the function for the processor computes: items begin .. end - 1. */
typedef struct shunt_kernel_work {
  shunt_kernel_use use;
  shunt_operand result;
  const void* const* input_data;
  void* result_data;
  shunt_parameters parameters;
  uint64_t begin;
  uint64_t end;
} shunt_kernel_work;

/* Begin with all zeros. The functions are called from any thread, as long as the kernel or a graph with it lives; those
 * that can fail answer NULL or why they do, a text that stays where it is until their next call on that thread. */
typedef struct shunt_kernel_description {
  const char* name;
  const char* glsl; /* at most one of the two */
  const uint32_t* spirv;
  size_t spirv_words;
  uint32_t inputs;
  uint32_t argument_bytes;
  const char* (*result)(const shunt_kernel_use* use, shunt_operand* result, void* user);    /* required */
  const char* (*cpu)(const shunt_kernel_work* work, void* user);                            /* NULL: on no processor */
  uint64_t (*items)(const shunt_kernel_use* use, const shunt_operand* result, void* user);  /* NULL: elements */
  uint64_t (*groups)(const shunt_kernel_use* use, const shunt_operand* result, void* user); /* NULL: by items */
  double flops_per_item;                                                                    /* 0: 4 */
  void* user;
} shunt_kernel_description;

/* Copies what it needs of the description but not what `user` points to. */
SHUNT_API shunt_kernel* shunt_kernel_create(const shunt_kernel_description* description, shunt_error* error);
/* Graphs and computations with it keep what they need. */
SHUNT_API void shunt_kernel_free(shunt_kernel* kernel);
SHUNT_API const char* shunt_kernel_prelude(void);

/* What a run gives back, in the order of these calls. */
SHUNT_API void shunt_output(shunt_graph* graph, shunt_tensor tensor);
/* Of a tensor so far; rank 0 after an error. */
SHUNT_API shunt_shape shunt_shape_of(const shunt_graph* graph, shunt_tensor tensor);

/* Begin with all zeros. */
typedef struct shunt_computation_options {
  const char* strategy; /* as that of a session, but for "layers" */
  int profile;          /* 1: with a trace, record the time of each op in a sample of the runs */
} shunt_computation_options;

/* Takes the graph over, also where it fails; `options` may be NULL. */
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
/* The decision record: where each op runs and why, for people and as JSON. */
SHUNT_API const char* shunt_explain(shunt_computation* computation);
SHUNT_API const char* shunt_explain_json(shunt_computation* computation);

/* Functions of F32 arrays in the caller's memory, rows one after the other, each call on the device that measures
 * fastest for its size. A result may lie where inputs lie; after an error it is as it was. */
typedef struct shunt_arrays shunt_arrays;

/* NULL in its place: by any device, in its own time. */
typedef struct shunt_array_call {
  const char* devices; /* ids or API names with commas; one alone never falls back; NULL: all of the runtime */
  uint64_t timeout_us; /* of the whole call; 0: none */
} shunt_array_call;

/* How a call was computed; NULL where nobody asks. Text lives until the next call. */
typedef struct shunt_array_run {
  const char* device;   /* its id; "" where there was nothing to compute */
  const char* reason;   /* why it was chosen: "measured", "fallback", ... */
  const char* failures; /* of the devices tried before; "": none */
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
/* Of each row of x [rows, columns]. */
SHUNT_API shunt_code shunt_arrays_softmax(shunt_arrays* arrays, const float* x, float* out, size_t rows, size_t columns,
                                          const shunt_array_call* call, shunt_array_run* run, shunt_error* error);
/* What is known so far: per function and size the time of each device, and which devices are set aside, and why. */
SHUNT_API const char* shunt_arrays_explain(shunt_arrays* arrays);

/* DLPack, https://dmlc.github.io/dlpack: `tensor` is a DLManagedTensor* whose memory the CPU can address, and which is
 * contiguous. What is given is taken over, also where that fails: its deleter is called when it is needed no more. */
SHUNT_API shunt_tensor shunt_constant_dlpack(shunt_graph* graph, const char* name, void* tensor);
SHUNT_API shunt_code shunt_write_dlpack(shunt_computation* computation, const char* input, void* tensor,
                                        shunt_error* error);
/* A copy of an output, as a DLManagedTensor* that the caller ends by its deleter; NULL where it fails. */
SHUNT_API void* shunt_read_dlpack(const shunt_computation* computation, size_t output, shunt_error* error);

/* A language model from a GGUF file; all calls on it are safe from many threads. */
typedef struct shunt_model shunt_model;
/* Sequences of tokens with what the model remembers of them. */
typedef struct shunt_session shunt_session;

typedef struct shunt_model_info {
  const char* name; /* what the file calls the model; "" where it does not */
  const char* architecture;
  const char* chat_format; /* NULL where it has none that is known here */
  const char* why_no_chat; /* then why; else NULL */
  uint32_t context_length; /* tokens that it was trained on at once */
  uint32_t vocabulary;     /* tokens are 0 to vocabulary - 1 */
  uint64_t weight_bytes;
  int32_t bos;  /* the token that begins a text; -1: none */
  int adds_bos; /* a prompt for this model begins with it */
} shunt_model_info;

/* Begin with all zeros. */
typedef struct shunt_load_options {
  int read_ahead; /* 1: read all weights into memory now, so that the first steps do not wait for the disk */
  shunt_on_progress on_progress; /* of that; may be NULL */
  void* user;                    /* of on_progress */
  shunt_interrupt* interrupt;    /* ends it; NULL: nothing does */
} shunt_load_options;

/* Of a split model any part. `options` may be NULL. */
SHUNT_API shunt_model* shunt_model_open(const char* path, shunt_error* error);
SHUNT_API shunt_model* shunt_model_open_with(const char* path, const shunt_load_options* options, shunt_error* error);
SHUNT_API void shunt_model_close(shunt_model* model);
SHUNT_API shunt_code shunt_model_describe(const shunt_model* model, shunt_model_info* info, shunt_error* error);
/* 1 where the model has said all after this token, else 0. */
SHUNT_API int shunt_is_end_token(const shunt_model* model, int32_t token);

/* The three functions below write as many tokens or bytes as `capacity` allows, and to `count` how many there are: with
 * 0 and NULL they only count.
 *
 * UTF-8 as tokens. `flags` are of SHUNT_ADD_BOS (unless the text begins with it), SHUNT_ADD_EOS and
 * SHUNT_PARSE_SPECIAL: control tokens written in the text become those tokens. */
enum { SHUNT_ADD_BOS = 1, SHUNT_ADD_EOS = 2, SHUNT_PARSE_SPECIAL = 4 };
SHUNT_API shunt_code shunt_tokenize(const shunt_model* model, const char* text, uint32_t flags, int32_t* tokens,
                                    size_t capacity, size_t* count, shunt_error* error);
/* The text of tokens, with a 0 after it where there is room, which is not counted. `flags` are of SHUNT_SHOW_CONTROL:
 * control tokens appear as their names, and SHUNT_KEEP_PREFIX: the space stays that shunt_tokenize() puts first. */
enum { SHUNT_SHOW_CONTROL = 1, SHUNT_KEEP_PREFIX = 2 };
SHUNT_API shunt_code shunt_detokenize(const shunt_model* model, const int32_t* tokens, size_t token_count,
                                      uint32_t flags, char* text, size_t capacity, size_t* count, shunt_error* error);
/* A conversation as tokens, up to where the model is to answer; `options` may be NULL. */
typedef struct shunt_message {
  const char* role; /* "system", "user" or "assistant" */
  const char* content;
} shunt_message;
typedef struct shunt_chat_options {
  const char* format;    /* by its name; a wrong one is refused with a list of them; NULL: the model's own */
  const int32_t* so_far; /* a conversation up to and with a reply, which the messages follow; NULL: they begin one */
  size_t so_far_count;
  int no_reply_opening; /* 1: end with the last message */
} shunt_chat_options;
SHUNT_API shunt_code shunt_apply_chat_template(const shunt_model* model, const shunt_message* messages,
                                               size_t message_count, const shunt_chat_options* options, int32_t* tokens,
                                               size_t capacity, size_t* count, shunt_error* error);

/* Begin with shunt_session_defaults(). */
typedef struct shunt_session_options {
  uint32_t context; /* tokens that each sequence can hold; 0: the model's own, at most 8192, at most what fits */
  uint32_t max_sequences;
  uint32_t max_batch_tokens; /* of one step */
  shunt_dtype cache_dtype;   /* F16, BF16 or F32 */
  /* NULL or "auto": by predicted time; "gpu" or "cpu": on the first GPU, or the processor, but for what it cannot run;
   * "layers": layers in turn on the devices. For one device and no other open the runtime on it alone. */
  const char* strategy;
  double margin; /* the first device must take 1 + margin times what another does; below 0: 0.05, or 1 unmeasured */
  int profile;   /* 1: with a trace, record the time of each op in a sample of the steps */
} shunt_session_options;
SHUNT_API shunt_session_options shunt_session_defaults(void);

/* `options` may be NULL. */
SHUNT_API shunt_session* shunt_session_open(const shunt_model* model, const shunt_runtime* runtime,
                                            const shunt_session_options* options, shunt_error* error);
SHUNT_API void shunt_session_close(shunt_session* session);
SHUNT_API uint32_t shunt_session_context(const shunt_session* session);
/* What a sequence holds, until the session's next call; NULL and 0 for one that is not there. */
SHUNT_API const int32_t* shunt_session_tokens(const shunt_session* session, uint32_t sequence, size_t* count);

/* Appends tokens to their sequences in one step. After an error the sequences are as before. */
typedef struct shunt_batch_token {
  uint32_t sequence;
  int32_t token;
  int wants_logits;
} shunt_batch_token;
SHUNT_API shunt_code shunt_session_decode(shunt_session* session, const shunt_batch_token* batch, size_t count,
                                          shunt_error* error);
/* Appends tokens to one sequence, in as many steps as it takes; the last one wants logits. After an error the tokens of
 * the steps before it stay. */
SHUNT_API shunt_code shunt_session_prefill(shunt_session* session, uint32_t sequence, const int32_t* tokens,
                                           size_t count, shunt_error* error);
/* Of the token that was the `index`-th to want them, [vocabulary], until the session's next call; NULL past the last.
 */
SHUNT_API const float* shunt_session_logits(const shunt_session* session, size_t index);
/* Forgets the tokens from `length` on. */
SHUNT_API shunt_code shunt_session_truncate(shunt_session* session, uint32_t sequence, size_t length,
                                            shunt_error* error);

/* Begin with shunt_generate_defaults(). The filters work one after the other: repetition penalty, top-k, top-p, min-p,
 * temperature. */
typedef struct shunt_generate_options {
  uint32_t max_tokens;      /* 0: until the model ends the text, or the context is full */
  const char* const* stops; /* texts that end it and are not given out */
  size_t stop_count;
  int ignore_end; /* 1: go on after end tokens */
  uint32_t sequence;
  int greedy;             /* 1: the best token after the penalty; what follows is ignored but for that */
  float temperature;      /* divides the logits; 0: greedy */
  uint32_t top_k;         /* only the k best tokens; 0: all */
  float top_p;            /* only the fewest best tokens that together have this probability; 1: all */
  float min_p;            /* only tokens at least this times as likely as the best; 0: all */
  float repeat_penalty;   /* divides positive and multiplies negative logits of recent tokens; 1: off */
  uint32_t repeat_last_n; /* how many tokens count as recent; 0: none */
  uint64_t seed;          /* means the same on every machine */
} shunt_generate_options;
SHUNT_API shunt_generate_options shunt_generate_defaults(void);

/* Gets new text, `bytes` of it and a 0 after them, cut at whole characters. Anything but 0 ends the generation. */
typedef int (*shunt_on_text)(void* user, const char* text, size_t bytes);

typedef enum shunt_stop SHUNT_ENUM_TYPE {
  SHUNT_STOP_END_TOKEN = 0,
  SHUNT_STOP_STRING,
  SHUNT_STOP_LENGTH,
  SHUNT_STOP_CONTEXT_FULL,
  SHUNT_STOP_INTERRUPTED /* by shunt_on_text or a shunt_interrupt */
} shunt_stop;
/* "end token", "context full", ... */
SHUNT_API const char* shunt_stop_name(shunt_stop stop);

/* Its text and tokens last until the session generates again or is closed. */
typedef struct shunt_generation {
  const char* text;
  size_t text_bytes;
  const int32_t* tokens; /* generated, without the end token */
  size_t token_count;
  shunt_stop stop;
  uint32_t prompt_tokens;
  uint32_t steps;    /* tokens computed one by one */
  double prompt_s;   /* until the first logits */
  double generate_s; /* from there on */
} shunt_generation;

/* Appends the prompt to its sequence, and what is generated: another prompt may follow on it. A text that begins its
 * sequence gets the BOS of models that take one, and control tokens written in it become those tokens. A context that
 * becomes full after the prompt is no error. `options`, `on_text` and `generation` may be NULL. */
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

/* shunt_linear(graph, x, weight, SHUNT_DEFAULTS), ...: a function for each row of ops/ops.def. */
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
/* SHUNT_WITH(shunt_attr_epsilon(1e-6f), ...): valid to the end of the block in which it stands. */
#define SHUNT_WITH(...)                                       \
  ((shunt_attributes){(const shunt_attribute[]){__VA_ARGS__}, \
                      sizeof((const shunt_attribute[]){__VA_ARGS__}) / sizeof(shunt_attribute)})
#define SHUNT_DEFAULTS ((shunt_attributes){NULL, 0})
/* SHUNT_SHAPE(2, 3) */
#define SHUNT_SHAPE(...) ((shunt_shape){sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), {__VA_ARGS__}})
#endif

/* NOLINTEND(readability-identifier-naming, modernize-use-using) */

#endif /* SHUNT_SHUNT_H */
