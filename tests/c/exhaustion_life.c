/* exhaustion_life MODEL MACHINE: the lives of a runtime, the devices found, a graph with its computation, a kernel, a
 * trace, arrays, a model and a session, so that each function that allocates is called, each again and again with the
 * Nth allocation failing, then the Nth thread, until a life passes without. A call that fails says why and leaks
 * nothing; what is closed afterwards closes; and a life that passes gives what it gave at first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exhaustion.h"
#include "shunt/shunt.h"

static const char* model_path;
static const char* machine_path;
static char cache[] = "/tmp/shunt_exhaustion_XXXXXX";
static shunt_runtime* runtime;
static shunt_model* model;
static shunt_error error;

static void give_up(const char* words) {
  fprintf(stderr, "exhaustion_life: %s (%s)\n", words, error.message);
  exit(1);
}

/* How a life ends: with the expected error, or normally. */
typedef enum { REFUSED, PASSED } ending;

static ending refused(void) {
  if (error.code != SHUNT_OUT_OF_MEMORY) give_up("a call failed with another code than out_of_memory");
  if (error.message[0] == '\0') give_up("a call failed without a message");
  return REFUSED;
}

/* Reads the device's profile. */
static ending life_of_a_runtime(void) {
  const shunt_runtime_options options = {.threads = 3, .devices = "cpu"};
  shunt_runtime* opened = shunt_runtime_open(&options, &error);
  if (opened == NULL) return refused();
  if (shunt_device_count(opened) == 0) give_up("a runtime has no device");
  if (shunt_warning_count(opened) != 0) give_up(shunt_warning(opened, 0));
  shunt_device_info device = {.size = sizeof device};
  const shunt_code code = shunt_device_describe(opened, 0, &device, &error);
  shunt_runtime_close(opened);
  return code == SHUNT_OK ? PASSED : refused();
}

static ending life_of_a_machine(void) {
  const shunt_runtime_options options = {.threads = 1, .machine = machine_path};
  shunt_runtime* opened = shunt_runtime_open(&options, &error);
  if (opened == NULL) return refused();
  if (shunt_device_count(opened) < 2) give_up("a simulated machine lacks devices");
  shunt_runtime_close(opened);
  return PASSED;
}

/* From the cache of found devices. */
static ending life_of_found_devices(void) {
  shunt_found* found = shunt_find_devices(NULL, &error);
  if (found == NULL) return refused();
  ending ended = PASSED;
  for (size_t index = 0; index < shunt_found_api_count(found) && ended == PASSED; ++index) {
    shunt_api_info api = {.size = sizeof api};
    if (shunt_found_api(found, index, &api, &error) != SHUNT_OK) ended = refused();
  }
  if (shunt_found_device_count(found) == 0) give_up("no device was found");
  shunt_device_info device = {.size = sizeof device};
  if (ended == PASSED && shunt_found_device(found, 0, &device, &error) != SHUNT_OK) ended = refused();
  shunt_found_free(found);
  return ended;
}

static ending run_computation(shunt_computation* computation) {
  const float x[4] = {1, 2, 3, 4};
  float y[2] = {0, 0};
  for (int step = 0; step < 2; ++step) {
    if (shunt_write(computation, "x", x, sizeof x, &error) != SHUNT_OK) return refused();
    if (shunt_run(computation, &error) != SHUNT_OK) return refused();
    if (shunt_read(computation, 0, y, sizeof y, &error) != SHUNT_OK) return refused();
    if (y[0] != 10 || y[1] != 30) give_up("a computation gives other numbers than before");
  }
  return shunt_explain(computation) == NULL || shunt_explain_json(computation) == NULL ? REFUSED : PASSED;
}

static ending life_of_a_graph_on(const shunt_runtime* its_runtime) {
  static const float weight[8] = {1, 1, 1, 1, 1, 2, 3, 4};
  shunt_graph* graph = shunt_graph_new();
  if (graph == NULL) return REFUSED;
  const shunt_shape one_row = {2, {1, 4}};
  const shunt_shape two_rows = {2, {2, 4}};
  const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, one_row, SHUNT_FIXED);
  const shunt_tensor w = shunt_constant(graph, "w", SHUNT_DTYPE_F32, two_rows, weight, sizeof weight);
  shunt_output(graph, shunt_relu(graph, shunt_linear(graph, x, w, SHUNT_DEFAULTS), SHUNT_DEFAULTS));
  shunt_computation* computation = shunt_computation_new(its_runtime, graph, NULL, &error);
  if (computation == NULL) return refused();
  const ending ended = run_computation(computation);
  shunt_computation_free(computation);
  return ended;
}

static ending life_of_a_graph(void) { return life_of_a_graph_on(runtime); }

static ending life_of_a_trace(void) {
  const shunt_runtime_options options = {.threads = 1, .devices = "cpu", .trace = 1};
  shunt_runtime* traced = shunt_runtime_open(&options, &error);
  if (traced == NULL) return refused();
  ending ended = life_of_a_graph_on(traced);
  char path[64];
  snprintf(path, sizeof path, "%s/trace.json", cache);
  if (ended == PASSED && (shunt_trace_summary(traced) == NULL || shunt_trace_summary_json(traced) == NULL ||
                          shunt_trace_lines(traced) == NULL))
    ended = REFUSED;
  if (ended == PASSED && shunt_trace_write(traced, path, &error) != SHUNT_OK) ended = refused();
  if (ended == PASSED && unlink(path) != 0) give_up("a trace was not written");
  shunt_trace_clear(traced);
  shunt_runtime_close(traced);
  return ended;
}

/* Sums of neighbours. */
static const char* pairs_result(const shunt_kernel_use* use, shunt_operand* result, void* user) {
  (void)user;
  *result = use->inputs[0];
  result->shape.extents[0] /= 2;
  return NULL;
}

static const char* pairs_on_cpu(const shunt_kernel_work* work, void* user) {
  (void)user;
  const float* x = work->input_data[0];
  float* y = work->result_data;
  for (uint64_t pair = work->begin; pair < work->end; ++pair) y[pair] = x[2 * pair] + x[2 * pair + 1];
  return NULL;
}

static ending life_of_a_kernel(void) {
  const shunt_kernel_description description = {
      .name = "pairs", .inputs = 1, .result = pairs_result, .cpu = pairs_on_cpu};
  shunt_kernel* kernel = shunt_kernel_create(&description, &error);
  if (kernel == NULL) return refused();
  shunt_graph* graph = shunt_graph_new();
  if (graph == NULL) {
    shunt_kernel_free(kernel);
    return REFUSED;
  }
  const shunt_shape four = {1, {4}};
  const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, four, SHUNT_FIXED);
  shunt_output(graph, shunt_add_node(graph, SHUNT_OP_custom, &x, 1, SHUNT_WITH(shunt_attr_code(kernel))));
  shunt_kernel_free(kernel);
  const shunt_computation_options options = {.strategy = "cpu"};
  shunt_computation* computation = shunt_computation_new(runtime, graph, &options, &error);
  if (computation == NULL) return refused();
  const float values[4] = {1, 2, 3, 4};
  float sums[2] = {0, 0};
  shunt_tensor_info info;
  ending ended = PASSED;
  if (shunt_write(computation, "x", values, sizeof values, &error) != SHUNT_OK ||
      shunt_run(computation, &error) != SHUNT_OK || shunt_output_info(computation, 0, &info, &error) != SHUNT_OK ||
      shunt_read(computation, 0, sums, sizeof sums, &error) != SHUNT_OK)
    ended = refused();
  else if (sums[0] != 3 || sums[1] != 7)
    give_up("a kernel gives wrong numbers");
  shunt_computation_free(computation);
  return ended;
}

/* DLManagedTensor of DLPack 0.8, https://dmlc.github.io/dlpack/latest/c_api.html */
/* NOLINTNEXTLINE(readability-identifier-naming): a name for C */
typedef struct dl_tensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t rank;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
  void* context;
  void (*deleter)(struct dl_tensor* self);
} dl_tensor;

static void forget(dl_tensor* self) { self->context = NULL; }

/* The memory is the caller's; it is given away until `context` is NULL. */
static dl_tensor lent(float* data, int64_t* extent) {
  dl_tensor tensor = {.data = data, .device = {1, 0}, .rank = 1, .dtype = {2, 32, 1}, .shape = extent};
  tensor.context = data;
  tensor.deleter = forget;
  return tensor;
}

static ending life_of_dlpack(void) {
  float values[4] = {1, 2, 3, 4};
  int64_t extent = 4;
  dl_tensor constant = lent(values, &extent);
  dl_tensor input = lent(values, &extent);
  ending ended = REFUSED;
  shunt_graph* graph = shunt_graph_new();
  if (graph == NULL) return REFUSED;
  const shunt_shape four = {1, {4}};
  const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, four, SHUNT_FIXED);
  const shunt_tensor w = shunt_constant_dlpack(graph, "w", &constant);
  const shunt_tensor state = shunt_state(graph, "s", SHUNT_DTYPE_F32, four);
  shunt_output(graph, shunt_add(graph, shunt_add(graph, x, w, SHUNT_DEFAULTS), state, SHUNT_DEFAULTS));
  shunt_computation* computation = shunt_computation_new(runtime, graph, NULL, &error);
  if (computation == NULL) {
    ended = refused();
  } else if (shunt_write_dlpack(computation, "x", &input, &error) != SHUNT_OK) {
    ended = refused();
    if (input.context != NULL) give_up("what a failed call took over was not given back");
  } else if (shunt_run(computation, &error) != SHUNT_OK) {
    ended = refused();
  } else {
    dl_tensor* sum = shunt_read_dlpack(computation, 0, &error);
    ended = sum == NULL ? refused() : PASSED;
    if (sum != NULL && (((float*)sum->data)[0] != 2 || ((float*)sum->data)[3] != 8)) give_up("DLPack: wrong numbers");
    if (sum != NULL) sum->deleter(sum);
  }
  shunt_computation_free(computation);
  if (constant.context != NULL) give_up("a constant was not given back");
  return ended;
}

static ending life_of_arrays(void) {
  const float a[4] = {1, 2, 3, 4};
  const float b[4] = {4, 3, 2, 1};
  float sums[4] = {0, 0, 0, 0};
  float products[4] = {0, 0, 0, 0};
  float odds[4] = {0, 0, 0, 0};
  float product = 0;
  float sum = 0;
  shunt_arrays* arrays = shunt_arrays_new(runtime, &error);
  if (arrays == NULL) return refused();
  ending ended = PASSED;
  if (shunt_arrays_add(arrays, a, b, sums, 4, NULL, NULL, &error) != SHUNT_OK ||
      shunt_arrays_dot(arrays, a, b, &product, 4, NULL, NULL, &error) != SHUNT_OK ||
      shunt_arrays_sum(arrays, a, &sum, 4, NULL, NULL, &error) != SHUNT_OK ||
      shunt_arrays_multiply(arrays, a, b, products, 4, NULL, NULL, &error) != SHUNT_OK ||
      shunt_arrays_softmax(arrays, a, odds, 2, 2, NULL, NULL, &error) != SHUNT_OK)
    ended = refused();
  else if (sums[0] != 5 || sums[3] != 5 || product != 20 || sum != 10 || products[1] != 6 || odds[0] != odds[2])
    give_up("arrays give wrong numbers");
  if (ended == PASSED && shunt_arrays_matmul(arrays, a, b, products, 2, 2, 2, NULL, NULL, &error) != SHUNT_OK)
    ended = refused();
  else if (ended == PASSED && (products[0] != 8 || products[3] != 13))
    give_up("a product of arrays is wrong");
  if (ended == PASSED && shunt_arrays_explain(arrays) == NULL) ended = REFUSED;
  shunt_arrays_free(arrays);
  return ended;
}

static void watch(void* user, const shunt_progress* progress) {
  (void)progress;
  ++*(int*)user;
}

static ending speak(const shunt_model* opened) {
  int32_t tokens[64];
  char text[64];
  size_t count = 0;
  size_t bytes = 0;
  if (shunt_tokenize(opened, "Once upon a time", SHUNT_ADD_BOS, tokens, 64, &count, &error) != SHUNT_OK ||
      shunt_detokenize(opened, tokens, count, 0, text, sizeof text, &bytes, &error) != SHUNT_OK)
    return refused();
  if (strcmp(text, "Once upon a time") != 0) give_up("a text does not come back from its tokens");
  const shunt_message message = {"user", "Hello"};
  const shunt_chat_options options = {.format = "chatml"};
  if (shunt_apply_chat_template(opened, &message, 1, &options, tokens, 64, &count, &error) != SHUNT_OK)
    return refused();
  return PASSED;
}

static ending life_of_a_model(void) {
  int heard = 0;
  shunt_interrupt* interrupt = shunt_interrupt_new();
  if (interrupt == NULL) return REFUSED;
  const shunt_load_options options = {.read_ahead = 1, .on_progress = watch, .user = &heard, .interrupt = interrupt};
  shunt_model* opened = shunt_model_open_with(model_path, &options, &error);
  shunt_interrupt_free(interrupt);
  if (opened == NULL) return refused();
  if (heard == 0) give_up("nothing was heard of a model's loading");
  shunt_model_info info;
  ending ended = shunt_model_describe(opened, &info, &error) == SHUNT_OK ? speak(opened) : refused();
  shunt_model_close(opened);
  return ended;
}

/* Two sequences, step by step, without a generation. */
static ending life_of_steps(void) {
  static float first_logit;
  shunt_session_options options = shunt_session_defaults();
  options.context = 32;
  options.max_sequences = 2;
  options.strategy = "cpu";
  shunt_session* session = shunt_session_open(model, runtime, &options, &error);
  if (session == NULL) return refused();
  const int32_t prompt[3] = {1, 20, 300};
  const shunt_batch_token next[2] = {{0, 7, 1}, {1, 8, 1}};
  shunt_generate_options how = shunt_generate_defaults();
  const char* stop = "zebra";
  how.max_tokens = 1;
  how.seed = 3;
  how.stops = &stop;
  how.stop_count = 1;
  ending ended = PASSED;
  if (shunt_session_prefill(session, 0, prompt, 3, &error) != SHUNT_OK ||
      shunt_session_decode(session, next, 2, &error) != SHUNT_OK) {
    ended = refused();
  } else {
    const float logit = shunt_session_logits(session, 1)[0];
    if (first_logit == 0) first_logit = logit;
    if (logit != first_logit) give_up("a step gives other logits than before");
    if (shunt_generate_from(session, prompt, 1, &how, NULL, NULL, NULL, &error) != SHUNT_OK) ended = refused();
  }
  shunt_session_close(session);
  return ended;
}

static char expected[256];

static ending life_of_a_session(void) {
  shunt_session_options options = shunt_session_defaults();
  options.context = 64;
  shunt_session* session = shunt_session_open(model, runtime, &options, &error);
  if (session == NULL) return refused();
  shunt_generate_options how = shunt_generate_defaults();
  how.greedy = 1;
  how.max_tokens = 3;
  shunt_generation generation;
  ending ended = PASSED;
  if (shunt_generate(session, "Once upon", &how, NULL, NULL, &generation, &error) != SHUNT_OK) {
    ended = refused();
    /* The session still exists, and reports that it is unusable. */
    if (shunt_session_truncate(session, 0, 0, &error) != SHUNT_OK) (void)refused();
  } else if (expected[0] == '\0') {
    snprintf(expected, sizeof expected, "%s", generation.text);
  } else if (strcmp(expected, generation.text) != 0) {
    give_up("a session gives another text than before");
  }
  shunt_session_close(session);
  return ended;
}

static void sweep(const char* name, ending (*life)(void), enum exhaustion_kind kind, int stays) {
  /* The first lives create what all lives share. */
  for (int warm = 0; warm < 2; ++warm)
    if (life() != PASSED) give_up(name);
  const long before = exhaustion_live();
  long nth = 1;
  for (int has_failed = 1; has_failed; nth += 1 + nth / 256) {
    memset(&error, 0, sizeof error);
    exhaustion_arm(kind, nth, stays);
    const ending ended = life();
    has_failed = exhaustion_disarm();
    if (!has_failed && ended != PASSED) give_up(name);
    if (exhaustion_live() != before) {
      fprintf(stderr, "exhaustion_life: %s, the %ldth of kind %d: %ld allocations are left\n", name, nth, (int)kind,
              exhaustion_live() - before);
      exit(1);
    }
  }
  printf("%s: passes without a failure from %ld on\n", name, nth);
}

/* Fills the cache with the devices found and with the profile of the device in use. */
static void fill_cache(void) {
  if (life_of_found_devices() != PASSED) give_up("the devices of this machine");
  shunt_device_info device = {.size = sizeof device};
  if (shunt_device_describe(runtime, 0, &device, &error) != SHUNT_OK) give_up("the runtime's device");
  char path[64];
  snprintf(path, sizeof path, "%s/calibration.json", cache);
  FILE* file = fopen(path, "w");
  if (file == NULL) give_up(path);
  const char* link = "{\"us\": 0, \"bytes_per_s\": 0, \"spread\": 0}";
  fprintf(file,
          "{\"format\": \"shunt calibration 1\", \"devices\": [{\"id\": \"%s\", \"name\": \"%s\","
          " \"driver\": \"%s\", \"threads\": 3, \"checked_s\": 1e12, \"launch_us\": 2, \"wake_us\": 0, \"op_us\": 0.5,"
          " \"to_device\": %s, \"from_device\": %s, \"both_ways\": %s, \"refused\": {}, \"ops\": {",
          device.id, device.name, device.driver, link, link, link);
  for (int op = 0; op < 40; ++op)
    fprintf(file,
            "%s\"add%d F32 F32 -> F32\": [{\"flops\": 1e6, \"bytes_read\": 8e6, \"bytes_written\": 4e6, \"us\": 1000,"
            " \"spread\": 0.1}, {\"flops\": 1e7, \"bytes_read\": 8e7, \"bytes_written\": 4e7, \"us\": 10000,"
            " \"spread\": 0.1}]",
            op == 0 ? "" : ", ", op);
  fprintf(file, "}}]}\n");
  if (fclose(file) != 0) give_up(path);
}

static void remove_cache(void) {
  static const char* const names[] = {"calibration.json", "devices.json", "devices.json.lock", "calibration.json.lock"};
  char path[64];
  for (size_t index = 0; index < sizeof names / sizeof *names; ++index) {
    snprintf(path, sizeof path, "%s/%s", cache, names[index]);
    unlink(path);
  }
  if (rmdir(cache) != 0) give_up("something was left in the folder for caches");
}

int main(int argc, char** argv) {
  if (argc != 3) give_up("usage: exhaustion_life MODEL MACHINE");
  model_path = argv[1];
  machine_path = argv[2];
  if (mkdtemp(cache) == NULL || setenv("SHUNT_CACHE_DIR", cache, 1) != 0) give_up("a folder for caches");
  const shunt_runtime_options options = {.threads = 1, .devices = "cpu"};
  runtime = shunt_runtime_open(&options, &error);
  model = shunt_model_open(model_path, &error);
  if (runtime == NULL || model == NULL) give_up("the runtime and the model that all lives share");
  fill_cache();
  sweep("a runtime whose threads fail", life_of_a_runtime, EXHAUSTION_THREAD, 0);
  for (int stays = 0; stays < 2; ++stays) {
    sweep("a runtime", life_of_a_runtime, EXHAUSTION_ALLOCATION, stays);
    sweep("a machine", life_of_a_machine, EXHAUSTION_ALLOCATION, stays);
    sweep("found devices", life_of_found_devices, EXHAUSTION_ALLOCATION, stays);
    sweep("a graph", life_of_a_graph, EXHAUSTION_ALLOCATION, stays);
    sweep("a trace", life_of_a_trace, EXHAUSTION_ALLOCATION, stays);
    sweep("a kernel", life_of_a_kernel, EXHAUSTION_ALLOCATION, stays);
    sweep("DLPack", life_of_dlpack, EXHAUSTION_ALLOCATION, stays);
    sweep("arrays", life_of_arrays, EXHAUSTION_ALLOCATION, stays);
    sweep("a model", life_of_a_model, EXHAUSTION_ALLOCATION, stays);
    sweep("a session", life_of_a_session, EXHAUSTION_ALLOCATION, stays);
    sweep("steps", life_of_steps, EXHAUSTION_ALLOCATION, stays);
  }
  shunt_model_close(model);
  shunt_runtime_close(runtime);
  remove_cache();
  return 0;
}
