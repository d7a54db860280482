#include "page.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <thread>

#include "answers.h"
#include "base/stopwatch.h"
#include "run/opened_devices.h"

namespace shunt::web {
namespace {

using models::Session;

template <class T>
bool has_type(const Json& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value.is_boolean();
  else if constexpr (std::is_unsigned_v<T>)
    return value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<T>::max();
  else if constexpr (std::is_arithmetic_v<T>)
    return value.is_number();
  else
    return value.is_string();
}

// Replaces `value` if the request gives another.
template <class T>
Status take(const Json& request, const char* name, T& value) {
  const auto found = request.find(name);
  if (found == request.end() || found->is_null()) return {};
  if (!has_type<T>(*found)) return fail(Code::invalid, fmt::format("{}: {} is no value for it", name, found->dump()));
  value = found->get<T>();
  return {};
}

Result<std::vector<Token>> tokens_of(const Json& request) {
  std::vector<Token> tokens;
  const auto list = request.find("tokens");
  if (list == request.end() || !list->is_array()) return fail(Code::invalid, "tokens: a list of token ids is needed");
  for (const Json& id : *list) {
    if (!has_type<std::uint32_t>(id) || id.get<std::uint32_t>() > std::numeric_limits<Token>::max())
      return fail(Code::invalid, fmt::format("tokens: {} is no token id", id.dump()));
    tokens.push_back(id.get<Token>());
  }
  return tokens;
}

Result<std::vector<Op>> ops_of(const Json& request) {
  std::vector<Op> ops;
  const auto list = request.find("ops");
  if (list == request.end() || !list->is_array()) return ops;
  for (const Json& name : *list) {
    if (!name.is_string()) return fail(Code::invalid, fmt::format("ops: {} is no name of an op", name.dump()));
    SHUNT_TRY_ASSIGN(ops.emplace_back(), op_from_name(name.get<std::string>()));
  }
  return ops;
}

}  // namespace

void Page::Free::operator()(std::byte* memory) const { std::free(memory); }

Result<Json> Page::answer(const Json& request) {
  if (!request.is_object()) return fail(Code::invalid, "a request is a JSON object");
  interrupted_ = false;
  Result<Json> answer = dispatch(request);
  if (!answer) forget_devices();
  return answer;
}

Result<Json> Page::dispatch(const Json& request) {
  std::string what;
  SHUNT_TRY(take(request, "do", what));
  if (what == "devices") return cli::to_json(find_devices());
  if (what == "open_model") return open_model(request);
  if (what == "run") return run(request);
  if (what == "eval") return eval(request);
  if (what == "verify") return verify(request);
  return fail(Code::invalid, fmt::format("do: \"{}\" is none of devices, open_model, run, eval, verify", what));
}

Result<Json> Page::open_model(const Json& request) {
  std::uint32_t address = 0;
  std::uint32_t bytes = 0;
  SHUNT_TRY(take(request, "address", address));
  SHUNT_TRY(take(request, "bytes", bytes));
  session_.reset();
  model_.reset();
  file_.reset(reinterpret_cast<std::byte*>(address));
  SHUNT_TRY_ASSIGN(model_, models::Model::from_memory({file_.get(), bytes}));
  const models::ModelConfig& config = model_->config();
  return Json{{"architecture", model_->metadata().string("general.architecture").value_or("")},
              {"weight_bytes", model_->weight_bytes()},
              {"context", config.context_length},
              {"chat", model_->chat().has_value()}};
}

Result<Runtime*> Page::runtime_of(const Json& request) {
  std::string devices;
  SHUNT_TRY(take(request, "device", devices));
  std::unique_ptr<Runtime>& runtime = runtimes_[devices];
  if (runtime == nullptr) {
    SHUNT_TRY_ASSIGN(runtime, Runtime::create({.devices = devices, .calibrated = false}));
  }
  return runtime.get();
}

Result<Session*> Page::session_of(const Json& request, SessionOptions options) {
  if (model_ == nullptr) return fail(Code::invalid, "no model is open");
  SHUNT_TRY(take(request, "context", options.context));
  SHUNT_TRY_ASSIGN(Runtime * runtime, runtime_of(request));
  const std::string devices = request.value("device", std::string());
  const bool fits = session_ != nullptr && session_devices_ == devices &&
                    session_->options().max_batch_tokens == options.max_batch_tokens &&
                    session_->options().context == options.context;
  if (!fits) {
    session_.reset();
    SHUNT_TRY_ASSIGN(session_, Session::create(*model_, *runtime, options));
    session_devices_ = devices;
  }
  session_->truncate(0, 0);
  return session_.get();
}

void Page::forget_devices() {
  session_.reset();
  runtimes_.clear();
}

Result<Json> Page::run(const Json& request) {
  const Stopwatch watch;
  GenerateOptions options{.max_tokens = 64, .sampling = {.greedy = true}};
  std::string prompt;
  bool chat = false;
  SHUNT_TRY(take(request, "prompt", prompt));
  SHUNT_TRY(take(request, "chat", chat));
  SHUNT_TRY(take(request, "tokens", options.max_tokens));
  SHUNT_TRY(take(request, "ignore_eos", options.ignore_end));
  SHUNT_TRY(take(request, "greedy", options.sampling.greedy));
  SHUNT_TRY(take(request, "seed", options.sampling.seed));
  SHUNT_TRY(take(request, "temperature", options.sampling.temperature));
  SHUNT_TRY_ASSIGN(Session * session, session_of(request, {}));
  const models::Tokenizer& tokenizer = model_->tokenizer();
  std::vector<Token> tokens;
  if (chat) {
    if (!model_->chat()) return std::unexpected(model_->chat().error());
    const Message messages[] = {{"user", prompt}};
    SHUNT_TRY_ASSIGN(tokens, model_->chat()->encode(messages, tokenizer, true));
  } else {
    SHUNT_TRY_ASSIGN(tokens, tokenizer.encode(prompt, {.add_bos = tokenizer.adds_bos(), .parse_special = true}));
  }
  const double load_s = watch.seconds();
  const auto on_text = [&](std::string_view text) {
    on_text_(text);
    std::this_thread::yield();  // so that the page paints it
    return true;
  };
  SHUNT_TRY_ASSIGN(const Generation generation,
                   models::generate(*session, tokens, options, {.on_text = on_text, .interrupted = &interrupted_}));
  return cli::to_json(generation, {.prompt = tokens,
                                   .seed = options.sampling.seed,
                                   .context = session->context(),
                                   .load_s = load_s,
                                   .devices = {session->used_devices().begin(), session->used_devices().end()}});
}

Result<Json> Page::eval(const Json& request) {
  models::EvaluateOptions options;
  std::uint32_t top = 10;
  SHUNT_TRY(take(request, "top", top));
  SHUNT_TRY(take(request, "every", options.every));
  SHUNT_TRY(take(request, "perplexity", options.perplexity));
  options.top = top;
  options.progress = [&](std::size_t) { return !interrupted_; };
  SHUNT_TRY_ASSIGN(const std::vector<Token> tokens, tokens_of(request));
  SHUNT_TRY_ASSIGN(Session * session, session_of(request, {.max_batch_tokens = models::kEvaluatedRowsPerStep}));
  SHUNT_TRY_ASSIGN(const models::Evaluation evaluation, models::evaluate(*session, tokens, options));
  return cli::to_json(evaluation, options.every);
}

Result<Json> Page::verify(const Json& request) {
  ConformanceOptions options;
  SHUNT_TRY_ASSIGN(options.ops, ops_of(request));
  bool sizes = true;
  SHUNT_TRY(take(request, "sizes", sizes));
  if (!sizes) options.sizes = {Sizes::awkward};
  SHUNT_TRY(take(request, "families", options.families));
  options.progress = [&](Op, std::uint64_t, std::uint64_t) { return !interrupted_; };
  SHUNT_TRY_ASSIGN(Runtime * runtime, runtime_of(request));
  SHUNT_TRY_ASSIGN(const ConformanceReport report, check_conformance(opened(*runtime).handles(), options));
  return cli::to_json(report, options, opened(*runtime).handles());
}

}  // namespace shunt::web
