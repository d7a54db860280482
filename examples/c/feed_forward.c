/* A feed-forward block, down(silu(gate(x)) * up(x)), built by hand, run on the devices that this machine has, and checked
 * against plain C. Prints where each op ran.
 *
 *   cc feed_forward.c $(pkg-config --cflags --libs shunt) -lm && ./a.out [DEVICES]
 */
#include <math.h>
#include <shunt/shunt.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTokens = 3, kWidth = 64, kHidden = 96 };

static float gate[kHidden][kWidth], up[kHidden][kWidth], down[kWidth][kHidden], x[kTokens][kWidth];

static void fill(float* values, size_t count, float step) {
  for (size_t i = 0; i < count; ++i) values[i] = sinf(step * (float)(i + 1)) / 8;
}

static float dot(const float* a, const float* b, size_t count) {
  float sum = 0;
  for (size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

static float expected(size_t token, size_t column) {
  float hidden[kHidden];
  for (size_t i = 0; i < kHidden; ++i) {
    const float g = dot(x[token], gate[i], kWidth);
    hidden[i] = g / (1 + expf(-g)) * dot(x[token], up[i], kWidth);
  }
  return dot(hidden, down[column], kHidden);
}

static void stop(const char* what, const shunt_error* error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, shunt_code_name(error->code));
  exit(1);
}

static shunt_graph* build(void) {
  shunt_graph* graph = shunt_graph_new();
  const shunt_shape in = SHUNT_SHAPE(kHidden, kWidth), out = SHUNT_SHAPE(kWidth, kHidden);
  const shunt_tensor input = shunt_input(graph, "x", SHUNT_DTYPE_F32, SHUNT_SHAPE(kTokens, kWidth), SHUNT_FIXED);
  const shunt_tensor by_gate = shunt_constant(graph, "gate", SHUNT_DTYPE_F32, in, gate, sizeof gate);
  const shunt_tensor by_up = shunt_constant(graph, "up", SHUNT_DTYPE_F32, in, up, sizeof up);
  const shunt_tensor by_down = shunt_constant(graph, "down", SHUNT_DTYPE_F32, out, down, sizeof down);
  const shunt_tensor hidden =
      shunt_mul(graph, shunt_silu(graph, shunt_linear(graph, input, by_gate, SHUNT_DEFAULTS), SHUNT_DEFAULTS),
                shunt_linear(graph, input, by_up, SHUNT_DEFAULTS), SHUNT_DEFAULTS);
  shunt_output(graph, shunt_linear(graph, hidden, by_down, SHUNT_DEFAULTS));
  return graph;
}

int main(int count, char** arguments) {
  fill(&gate[0][0], sizeof gate / sizeof(float), 0.37F);
  fill(&up[0][0], sizeof up / sizeof(float), 0.71F);
  fill(&down[0][0], sizeof down / sizeof(float), 0.53F);
  fill(&x[0][0], sizeof x / sizeof(float), 1.3F);

  shunt_error error;
  const shunt_runtime_options options = {.devices = count > 1 ? arguments[1] : NULL};
  shunt_runtime* runtime = shunt_runtime_open(&options, &error);
  if (runtime == NULL) stop("no runtime", &error);
  for (size_t i = 0; i < shunt_device_count(runtime); ++i)
    printf("%s: %s\n", shunt_device_id(runtime, i), shunt_device_name(runtime, i));

  shunt_computation* computation = shunt_computation_new(runtime, build(), NULL, &error);
  if (computation == NULL) stop("no computation", &error);
  float y[kTokens][kWidth];
  if (shunt_write(computation, "x", x, sizeof x, &error) != SHUNT_OK) stop("write", &error);
  if (shunt_run(computation, &error) != SHUNT_OK) stop("run", &error);
  if (shunt_read(computation, 0, y, sizeof y, &error) != SHUNT_OK) stop("read", &error);
  fputs(shunt_explain(computation), stdout);

  float largest = 0;
  for (size_t token = 0; token < kTokens; ++token)
    for (size_t column = 0; column < kWidth; ++column)
      largest = fmaxf(largest, fabsf(y[token][column] - expected(token, column)));
  shunt_computation_free(computation);
  shunt_runtime_close(runtime);
  printf("largest difference from plain C: %.1e\n", (double)largest);
  return largest < 1e-4F ? 0 : 1;
}
