#include "devices/device.h"

#include <fmt/format.h>

#include "devices/upload.h"
#include "trace/recorder.h"

namespace shunt {

std::uint64_t Device::now_ns() const { return trace::now_ns(); }

Layout Device::layout_for(const OpCall&, std::size_t) const { return Layout::rows; }

std::vector<KernelCandidate> Device::kernels_for(const OpCall&, Layout) const { return {}; }

void Device::choose_kernels(KernelChoices) {}

Layout weights_layout(const Device& device, const OpCall& call) {
  for (std::size_t input = 0; input < call.inputs.size(); ++input)
    if (call.has_input(input))
      if (const Layout layout = device.layout_for(call, input); layout != Layout::rows) return layout;
  return Layout::rows;
}

Result<std::unique_ptr<Buffer>> Device::import_host(std::span<const std::byte>, std::shared_ptr<const void>) {
  return fail(Code::unsupported, fmt::format("{} has no way to use the host's memory", info().id));
}

Result<std::unique_ptr<Upload>> Device::upload() { return upload_by_writing(*this); }

Result<std::shared_ptr<const void>> Device::pin_host(std::span<const std::byte>, HostAccess,
                                                     std::shared_ptr<const void>) {
  return fail(Code::unsupported, fmt::format("{} has no way to pin the host's memory", info().id));
}

void Device::prefetch(const Program&) {}

Event Device::copy_weight(Device& peer, const Binding& from, const Binding& to, const MatrixRows&) {
  return copy_from_peer(peer, from, to);
}

Event Device::copy_from_peer(Device&, const Binding& from, const Binding& to) {
  const std::span<const std::byte> source = from.buffer->host();
  if (source.empty() && from.bytes != 0)
    return Event(fail(Code::unsupported, "the peer's memory cannot be addressed by the host"));
  return write(to, source.subspan(from.offset, from.bytes));
}

}  // namespace shunt
