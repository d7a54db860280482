#include "shunt/runtime.h"
#include "trace/chrome.h"
#include "trace/recording.h"
#include "trace/text_file.h"

namespace shunt {

Status Runtime::write_trace(const std::string& path) const {
  return trace::write_text_file(path, to_chrome_json(trace::recording_of(*recorder_)));
}

}  // namespace shunt
