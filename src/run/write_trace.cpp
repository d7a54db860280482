#include "base/system/text_file.h"
#include "shunt/runtime.h"
#include "shunt/trace.h"
#include "trace/chrome.h"

namespace shunt {

Status Runtime::write_trace(const std::string& path) const {
  return write_text_file(path, to_chrome_json(recording()));
}

}  // namespace shunt
