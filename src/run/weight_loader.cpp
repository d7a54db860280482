#include "run/weight_loader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/strips.h"
#include "run/on_device.h"

namespace shunt {
namespace {

// More threads than this read no more bytes per second.
constexpr std::uint32_t kMostReaders = 16;
// Reading fewer takes no longer than waking another thread.
constexpr std::uint64_t kLeastShareBytes = std::uint64_t{256} << 10U;
constexpr std::uint64_t kShareAlignment = 4096;

}  // namespace

Status WeightLoader::copy(const WeightPart& part, Device& device, const Binding& to) {
  if (!since_) since_.emplace();
  Status sent = send(part, device, to);
  // The first error is the one to report.
  if (!sent) static_cast<void>(finish());
  return sent;
}

Status WeightLoader::send(const WeightPart& part, Device& device, const Binding& to) {
  SHUNT_TRY_ASSIGN(Upload* const upload, upload_to(device));
  const std::uint64_t unit = to.layout == Layout::strips ? kStripRows * part.row_bytes : 1;
  for (std::uint64_t done = 0; done < part.bytes;) {
    SHUNT_TRY_ASSIGN(const std::span<std::byte> piece, upload->take(part.bytes - done, unit));
    SHUNT_TRY(read(part.index, part.offset + done, piece));
    const Binding place{.buffer = to.buffer, .offset = to.offset + done, .bytes = piece.size(), .layout = to.layout};
    SHUNT_TRY(upload->send(place, part.rows));
    source_->release(part.index, part.offset + done, piece.size());
    done += piece.size();
  }
  loaded_.bytes += part.bytes;
  return {};
}

Status WeightLoader::finish() {
  Status all;
  for (const auto& [device, upload] : uploads_)
    if (Status arrived = on_device(*device, upload->finish()); all) all = std::move(arrived);
  uploads_.clear();
  threads_.reset();
  if (since_) loaded_.seconds += since_->seconds();
  since_.reset();
  return all;
}

Result<Upload*> WeightLoader::upload_to(Device& device) {
  std::unique_ptr<Upload>& upload = uploads_[&device];
  if (upload == nullptr) {
    auto begun = device.upload();
    if (!begun) {
      uploads_.erase(&device);
      return std::unexpected(std::move(begun).error());
    }
    upload = std::move(*begun);
  }
  return upload.get();
}

Status WeightLoader::read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) {
  const std::uint64_t worth = to.size() / kLeastShareBytes;
  if (worth > 1 && !threads_)
    threads_.emplace(std::min(usable_cores(), kMostReaders), std::span<const std::uint32_t>());
  const std::uint64_t shares = worth > 1 ? std::min<std::uint64_t>(worth, threads_->threads()) : 1;
  if (shares == 1) return source_->read(index, offset, to);
  const auto begin_of = [&](std::uint64_t share) {
    return share == shares ? to.size() : to.size() * share / shares / kShareAlignment * kShareAlignment;
  };
  std::vector<Status> read(shares);
  threads_->run([&](std::uint32_t share) {
    if (share >= shares) return;
    const std::uint64_t begin = begin_of(share);
    read[share] = source_->read(index, offset + begin, to.subspan(begin, begin_of(share + 1) - begin));
  });
  for (Status& each : read) SHUNT_TRY(std::move(each));
  return {};
}

}  // namespace shunt
