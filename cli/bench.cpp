// shunt bench: speed of a model.
#include <algorithm>
#include <chrono>

#include "command.h"
#include "devices/device.h"
#include "models/sampling.h"

namespace shunt::cli {
namespace {

using namespace models;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Spread {
  double least = 0;
  double median = 0;
  double most = 0;
};

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

Json to_json(const Spread& spread) { return {{"min", spread.least}, {"median", spread.median}, {"max", spread.most}}; }

struct Options {
  std::string model;
  std::uint32_t prompt = 512;
  std::uint32_t generate = 64;
  std::uint32_t repetitions = 5;
  SessionArguments session;
  RuntimeOptions runtime;
  bool json = false;
};

class ModelBench {
 public:
  explicit ModelBench(const Options& options) : options_(options) {}

  Status execute() {
    SHUNT_TRY_ASSIGN(runtime_, Runtime::create(options_.runtime));
    SHUNT_TRY_ASSIGN(model_, load_model(options_.model));
    SHUNT_TRY_ASSIGN(SessionOptions settings, session_options(options_.session));
    if (settings.context == 0) settings.context = std::max({options_.prompt, options_.generate, 1U});
    SHUNT_TRY_ASSIGN(session_, Session::create(*model_, *runtime_, settings));
    std::vector<double> prompt;
    std::vector<double> generate;
    ProgressLine line;
    // The first round warms caches, pages and programs and is not counted.
    for (std::uint32_t round = 0; round <= options_.repetitions; ++round) {
      line.show(fmt::format("round {} of {}", round, options_.repetitions));
      SHUNT_TRY_ASSIGN(const double prompt_s, time_prompt());
      SHUNT_TRY_ASSIGN(const double generate_s, time_generation());
      if (round == 0) continue;
      if (options_.prompt > 0) prompt.push_back(options_.prompt / prompt_s);
      if (options_.generate > 0) generate.push_back(options_.generate / generate_s);
    }
    line.clear();
    return report(prompt, generate);
  }

 private:
  [[nodiscard]] std::vector<Token> random_tokens(std::size_t count) {
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < count; ++i)
      tokens.push_back(static_cast<Token>(random_.next() % model_->config().vocabulary));
    return tokens;
  }

  Result<double> time_prompt() {
    session_->truncate(0, 0);
    const std::vector<Token> tokens = random_tokens(options_.prompt);
    const auto start = Clock::now();
    SHUNT_TRY(session_->append(0, tokens));
    return seconds_since(start);
  }

  Result<double> time_generation() {
    session_->truncate(0, 0);
    const std::vector<Token> tokens = random_tokens(options_.generate);
    const auto start = Clock::now();
    for (const Token& token : tokens) SHUNT_TRY(session_->append(0, std::span(&token, 1)));
    return seconds_since(start);
  }

  // Bytes of weights that one generated token reads: all matrices, but of the embedding only a row.
  [[nodiscard]] std::uint64_t bytes_per_token() const {
    std::uint64_t bytes = 0;
    for (const WeightInfo& info : model_->weights().weights())
      if (info.name != "token_embd.weight" || model_->config().tied_output) bytes += info.bytes;
    return bytes;
  }

  Status report(const std::vector<double>& prompt, const std::vector<double>& generate) {
    Json json = {{"model", options_.model},
                 {"threads", runtime_->devices().front()->info().compute_units},
                 {"repetitions", options_.repetitions}};
    std::string text;
    if (!prompt.empty()) {
      json["prompt_tokens"] = options_.prompt;
      json["prompt_tokens_per_s"] = to_json(spread_of(prompt));
      text += fmt::format("prompt {:>5}   {:>9.1f} tokens/s (median; {:.1f} .. {:.1f})\n", options_.prompt,
                          spread_of(prompt).median, spread_of(prompt).least, spread_of(prompt).most);
    }
    if (!generate.empty()) {
      const Spread spread = spread_of(generate);
      const double gigabytes = spread.median * static_cast<double>(bytes_per_token()) / 1e9;
      json["generate_tokens"] = options_.generate;
      json["generate_tokens_per_s"] = to_json(spread);
      json["generate_weight_gb_per_s"] = gigabytes;
      text +=
          fmt::format("generate {:>3}   {:>9.1f} tokens/s (median; {:.1f} .. {:.1f}), reading weights at {:.1f} GB/s\n",
                      options_.generate, spread.median, spread.least, spread.most, gigabytes);
    }
    return options_.json ? print_json(json) : print(text);
  }

  const Options& options_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Session> session_;
  SplitMix64 random_{1};
};

}  // namespace

Action bench(CLI::App& command);
Action bench(CLI::App& command) {
  auto options = std::make_shared<Options>();
  CLI::App* model = command.add_subcommand("model", "Tokens per second of a prompt and of generation");
  command.require_subcommand(1);
  add_model(*model, options->model);
  model->add_option("--prompt", options->prompt, "Tokens of the prompt; 0: none")->capture_default_str();
  model->add_option("--generate", options->generate, "Tokens to generate; 0: none")->capture_default_str();
  model->add_option("--repetitions", options->repetitions, "Counted rounds")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  add_session(*model, options->session);
  add_runtime(*model, options->runtime);
  add_json(*model, options->json);
  model->footer("Example:\n  shunt bench model model.gguf --threads 2 --json");
  return [options] { return ModelBench(*options).execute(); };
}

}  // namespace shunt::cli
