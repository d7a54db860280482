#include "devices/metal/objective_c.h"

#include <fmt/format.h>

namespace shunt::metal {
namespace {

constexpr const char* kLibraryVariable = "SHUNT_METAL_LIBRARY";  // a library that replaces both
constexpr std::string_view kAdvice = "Metal is Apple's: it takes a Mac with macOS 11 or later";

}  // namespace

Result<std::shared_ptr<const ObjectiveC>> ObjectiveC::open() {
  std::shared_ptr<ObjectiveC> runtime(new ObjectiveC);
  SHUNT_TRY_ASSIGN(runtime->metal_,
                   SharedLibrary::open("/System/Library/Frameworks/Metal.framework/Metal", kLibraryVariable, kAdvice));
  SHUNT_TRY_ASSIGN(runtime->objective_c_, SharedLibrary::open("/usr/lib/libobjc.A.dylib", kLibraryVariable, kAdvice));
  SHUNT_TRY(runtime->load());
  return runtime;
}

Status ObjectiveC::load() {
  const char* missing = nullptr;
  const auto find = [&]<class Function>(const SharedLibrary& library, const char* name, Function& function) {
    function = library.find<Function>(name);
    if (function == nullptr) missing = name;
  };
  find(objective_c_, "objc_msgSend", functions_.send);
  find(objective_c_, "sel_registerName", functions_.selector);
  find(objective_c_, "objc_getClass", functions_.find_class);
  find(objective_c_, "objc_retain", functions_.retain);
  find(objective_c_, "objc_release", functions_.release);
  find(objective_c_, "objc_autoreleasePoolPush", functions_.push_pool);
  find(objective_c_, "objc_autoreleasePoolPop", functions_.pop_pool);
  find(metal_, "MTLCreateSystemDefaultDevice", functions_.default_device);
  if (missing != nullptr) return fail(Code::unsupported, fmt::format("there is no function {}; {}", missing, kAdvice));
  functions_.all_devices = metal_.find<Id (*)()>("MTLCopyAllDevices");
  simulated_ = metal_.find<void (*)()>("shunt_metal_is_simulated") != nullptr;
#define SHUNT_METAL_MESSAGE(name, words, receiver, type) \
  messages_.name = Message<type>(functions_.send, functions_.selector(words));
#include "devices/metal/messages.def"
  string_class_ = functions_.find_class("NSString");
  options_class_ = functions_.find_class("MTLCompileOptions");
  constants_class_ = functions_.find_class("MTLFunctionConstantValues");
  if (string_class_ == nullptr || options_class_ == nullptr || constants_class_ == nullptr)
    return fail(Code::unsupported,
                fmt::format("there is no class NSString, MTLCompileOptions or MTLFunctionConstantValues; {}", kAdvice));
  return {};
}

std::vector<Owned> ObjectiveC::devices() const {
  const Pool pool(*this);
  std::vector<Owned> found;
  const Owned all = own(functions_.all_devices == nullptr ? nullptr : functions_.all_devices());
  for (std::uint64_t index = 0; index < messages_.count(all.get()); ++index)
    found.push_back(keep(messages_.object_at(all.get(), index)));
  if (!found.empty()) return found;
  if (Owned device = own(functions_.default_device())) found.push_back(std::move(device));
  return found;
}

std::string ObjectiveC::text(Id string) const {
  const char* const characters = messages_.utf8(string);
  return characters == nullptr ? "" : characters;
}

std::string ObjectiveC::describe(Id error) const {
  if (error == nullptr) return "no error is given";
  return fmt::format("{} ({})", text(messages_.description(error)), messages_.code(error));
}

}  // namespace shunt::metal
