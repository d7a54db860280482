/* exhaustion_life MODEL: the lives of a runtime, a graph with its computation, arrays, a model and a session, each
 * again and again with the Nth allocation failing, then the Nth thread, until a life passes without. A call that fails
 * says why and leaks nothing; what is closed afterwards closes; and a life that passes gives what it gave at first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exhaustion.h"
#include "shunt/shunt.h"

static const char* model_path;
static shunt_runtime* runtime;
static shunt_model* model;
static shunt_error error;

static void give_up(const char* words) {
  fprintf(stderr, "exhaustion_life: %s (%s)\n", words, error.message);
  exit(1);
}

/* The answer of a life: it failed as it should, or passed. */
typedef enum { REFUSED, PASSED } ending;

static ending refused(void) {
  if (error.code != SHUNT_OUT_OF_MEMORY) give_up("a call failed with another code than out_of_memory");
  if (error.message[0] == '\0') give_up("a call failed without a message");
  return REFUSED;
}

static ending life_of_a_runtime(void) {
  const shunt_runtime_options options = {.threads = 3, .devices = "cpu"};
  shunt_runtime* opened = shunt_runtime_open(&options, &error);
  if (opened == NULL) return refused();
  if (shunt_device_count(opened) == 0) give_up("a runtime has no device");
  shunt_runtime_close(opened);
  return PASSED;
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
  return shunt_explain(computation) == NULL ? REFUSED : PASSED;
}

static ending life_of_a_graph(void) {
  static const float weight[8] = {1, 1, 1, 1, 1, 2, 3, 4};
  shunt_graph* graph = shunt_graph_new();
  if (graph == NULL) return REFUSED;
  const shunt_shape one_row = {2, {1, 4}};
  const shunt_shape two_rows = {2, {2, 4}};
  const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, one_row, SHUNT_FIXED);
  const shunt_tensor w = shunt_constant(graph, "w", SHUNT_DTYPE_F32, two_rows, weight, sizeof weight);
  shunt_output(graph, shunt_relu(graph, shunt_matmul(graph, x, w, SHUNT_DEFAULTS), SHUNT_DEFAULTS));
  shunt_computation* computation = shunt_computation_new(runtime, graph, NULL, &error);
  if (computation == NULL) return refused();
  const ending ended = run_computation(computation);
  shunt_computation_free(computation);
  return ended;
}

static ending life_of_arrays(void) {
  const float a[4] = {1, 2, 3, 4};
  const float b[4] = {4, 3, 2, 1};
  float sums[4] = {0, 0, 0, 0};
  float product = 0;
  shunt_arrays* arrays = shunt_arrays_new(runtime, &error);
  if (arrays == NULL) return refused();
  ending ended = PASSED;
  if (shunt_arrays_add(arrays, a, b, sums, 4, NULL, NULL, &error) != SHUNT_OK ||
      shunt_arrays_dot(arrays, a, b, &product, 4, NULL, NULL, &error) != SHUNT_OK)
    ended = refused();
  else if (sums[0] != 5 || sums[3] != 5 || product != 20)
    give_up("arrays give wrong numbers");
  shunt_arrays_free(arrays);
  return ended;
}

static ending life_of_a_model(void) {
  shunt_model* opened = shunt_model_open(model_path, &error);
  if (opened == NULL) return refused();
  int32_t tokens[16];
  size_t count = 0;
  ending ended = PASSED;
  if (shunt_tokenize(opened, "Once upon a time", SHUNT_ADD_BOS, tokens, 16, &count, &error) != SHUNT_OK)
    ended = refused();
  else if (count == 0)
    give_up("a text has no tokens");
  shunt_model_close(opened);
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
    /* It is still there, and says that it is not to be used. */
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
  /* What is made once for all lives is made by the first ones. */
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

int main(int argc, char** argv) {
  if (argc != 2) give_up("usage: exhaustion_life MODEL");
  model_path = argv[1];
  /* Files of JSON stay out of it: the library that reads them allocates in its destructors. */
  char cache[] = "/tmp/shunt_exhaustion_XXXXXX";
  if (mkdtemp(cache) == NULL || setenv("SHUNT_CACHE_DIR", cache, 1) != 0) give_up("a folder for caches");
  const shunt_runtime_options options = {.threads = 1, .devices = "cpu"};
  runtime = shunt_runtime_open(&options, &error);
  model = shunt_model_open(model_path, &error);
  if (runtime == NULL || model == NULL) give_up("the runtime and the model that all lives share");
  sweep("a runtime whose threads fail", life_of_a_runtime, EXHAUSTION_THREAD, 0);
  for (int stays = 0; stays < 2; ++stays) {
    sweep("a runtime", life_of_a_runtime, EXHAUSTION_ALLOCATION, stays);
    sweep("a graph", life_of_a_graph, EXHAUSTION_ALLOCATION, stays);
    sweep("arrays", life_of_arrays, EXHAUSTION_ALLOCATION, stays);
    sweep("a model", life_of_a_model, EXHAUSTION_ALLOCATION, stays);
    sweep("a session", life_of_a_session, EXHAUSTION_ALLOCATION, stays);
  }
  shunt_model_close(model);
  shunt_runtime_close(runtime);
  if (rmdir(cache) != 0) give_up("something was left in the folder for caches");
  return 0;
}
