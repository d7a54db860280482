// The functions that shunt.mjs calls. Strings are UTF-8 in WebAssembly's memory, passed as address and length.
#include <cstddef>
#include <cstdlib>

#include "base/parse_json.h"
#include "page.h"

#define SHUNT_EXPORT(name) __attribute__((export_name(name)))
#define SHUNT_IMPORT(name) __attribute__((import_module("host"), import_name(name)))

using shunt::Json;
using shunt::web::Page;

extern "C" {

SHUNT_IMPORT("text") void shunt_web_text(const char* text, std::size_t bytes);
SHUNT_IMPORT("answer") void shunt_web_answer(const char* json, std::size_t bytes);

SHUNT_EXPORT("shunt_page_open") Page* shunt_page_open() {
  return new Page([](std::string_view text) { shunt_web_text(text.data(), text.size()); });
}
SHUNT_EXPORT("shunt_page_close") void shunt_page_close(Page* page) { delete page; }
SHUNT_EXPORT("shunt_page_interrupt") void shunt_page_interrupt(Page* page) { page->interrupt(); }

// Passes the answer to host.answer: as in page.h, or {"error": {"code", "message"}}.
SHUNT_EXPORT("shunt_page_ask") void shunt_page_ask(Page* page, const char* request, std::size_t bytes) {
  const Json json = shunt::parse_json({request, bytes});
  auto answer = page->answer(json);
  if (!answer) answer = Json{{"error", {{"code", name_of(answer.error().code)}, {"message", answer.error().message}}}};
  const std::string text = answer->dump(-1, ' ', false, Json::error_handler_t::replace);
  shunt_web_answer(text.data(), text.size());
}

SHUNT_EXPORT("shunt_allocate") void* shunt_allocate(std::size_t bytes) { return std::malloc(bytes); }
SHUNT_EXPORT("shunt_free") void shunt_free(void* memory) { std::free(memory); }

// Debian's WASI libraries use stack protection but do not provide its symbols.
extern const std::uintptr_t __stack_chk_guard;
const std::uintptr_t __stack_chk_guard = 0x595e9fbd;
void __stack_chk_fail() { __builtin_trap(); }
}
