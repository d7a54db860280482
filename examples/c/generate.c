/* Text out of a model file: goes on from a prompt, until the text is LENGTH bytes long, the model ends it, or Ctrl-C does.
 *
 *   cc generate.c $(pkg-config --cflags --libs shunt) -o generate && ./generate MODEL PROMPT [LENGTH] [DEVICES]
 */
#include <shunt/shunt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void stop(const char* what, const shunt_error* error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, shunt_code_name(error->code));
  exit(1);
}

/* Ends the generation after its current step. */
static shunt_interrupt* interrupt;
static void on_signal(int number) {
  (void)number;
  shunt_interrupt_set(interrupt);
}

typedef struct reader {
  size_t wanted; /* bytes */
  size_t seen;
} reader;

static int on_text(void* user, const char* text, size_t bytes) {
  reader* its_reader = user;
  fwrite(text, 1, bytes, stdout);
  fflush(stdout);
  its_reader->seen += bytes;
  return its_reader->seen >= its_reader->wanted;
}

int main(int count, char** arguments) {
  if (count < 3) {
    fprintf(stderr, "generate MODEL PROMPT [LENGTH] [DEVICES]\n");
    return 2;
  }
  shunt_error error;
  interrupt = shunt_interrupt_new();
  signal(SIGINT, on_signal);
  const shunt_runtime_options devices = {.devices = count > 4 ? arguments[4] : NULL, .interrupt = interrupt};
  shunt_runtime* runtime = shunt_runtime_open(&devices, &error);
  if (runtime == NULL) stop("no runtime", &error);
  shunt_model* model = shunt_model_open(arguments[1], &error);
  if (model == NULL) stop("no model", &error);
  shunt_session* session = shunt_session_open(model, runtime, NULL, &error);
  if (session == NULL) stop("no session", &error);

  shunt_model_info info;
  if (shunt_model_describe(model, &info, &error) != SHUNT_OK) stop("no description", &error);
  printf("%s: %s, %u tokens of context on %s\n", info.name, info.architecture, (unsigned)shunt_session_context(session),
         shunt_device_id(runtime, 0));

  reader its_reader = {count > 3 ? strtoul(arguments[3], NULL, 10) : 200, 0};
  shunt_generate_options options = shunt_generate_defaults();
  options.greedy = 1;
  shunt_generation generation;
  fputs(arguments[2], stdout);
  if (shunt_generate(session, arguments[2], &options, on_text, &its_reader, &generation, &error) != SHUNT_OK)
    stop("generate", &error);
  printf("\n%u tokens read in %.2f s, %zu generated in %.2f s; ended by: %s\n", (unsigned)generation.prompt_tokens,
         generation.prompt_s, generation.token_count, generation.generate_s, shunt_stop_name(generation.stop));

  shunt_session_close(session);
  shunt_model_close(model);
  shunt_runtime_close(runtime);
  signal(SIGINT, SIG_DFL);
  shunt_interrupt_free(interrupt);
  return 0;
}
