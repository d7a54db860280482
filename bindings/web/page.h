// The state of a page: a model and its devices. Answers JSON requests with what commands answer with --json, so that a
// page and a terminal report the same.
//
// Owns all of it. One request at a time; interrupt() may be called meanwhile, while an answer waits for the browser.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "models/session.h"
#include "output.h"
#include "shunt/runtime.h"

namespace shunt::web {

class Page {
 public:
  using OnText = std::function<void(std::string_view text)>;
  explicit Page(OnText on_text) : on_text_(std::move(on_text)) {}

  // {"do": NAME, ...}. Without "device", the devices are chosen as `shunt run` chooses them.
  //   devices     -> as shunt devices
  //   open_model  address, bytes: a GGUF file in WebAssembly's memory, 16-byte aligned; the page owns it from then on
  //               -> architecture, weight_bytes, context, chat
  //   run         prompt, tokens [64], greedy [true], ignore_eos [false], chat [false], seed [0], temperature [0.8],
  //               context [0: the model's], device -> as shunt run; on_text gets the text as it arrives
  //   eval        tokens, top [10], every, perplexity, context, device -> as shunt eval
  //   verify      ops [all], device -> as shunt verify
  // Errors: invalid for any other request; those of the functions that do the work.
  [[nodiscard]] Result<Json> answer(const Json& request);

  // Ends the running generation after its current token.
  void interrupt() { interrupted_ = true; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  [[nodiscard]] Result<Json> dispatch(const Json& request);
  [[nodiscard]] Result<Json> open_model(const Json& request);
  [[nodiscard]] Result<Json> run(const Json& request);
  [[nodiscard]] Result<Json> eval(const Json& request);
  [[nodiscard]] Result<Json> verify(const Json& request);
  // Opens it once and keeps it.
  [[nodiscard]] Result<Runtime*> runtime_of(const Json& request);
  // Returns a session of the open model with an empty sequence. The last session is kept for requests that ask for the
  // same.
  [[nodiscard]] Result<models::Session*> session_of(const Json& request, SessionOptions options);
  // Devices may have failed: the next request opens them again.
  void forget_devices();

  OnText on_text_;
  std::atomic<bool> interrupted_{false};
  std::map<std::string, std::unique_ptr<Runtime>> runtimes_;  // by the device list
  std::unique_ptr<std::byte, Free> file_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<models::Session> session_;
  std::string session_devices_;
};

}  // namespace shunt::web
