#include "run/weight_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/out_of_memory.h"
#include "base/system/thread_pool.h"
#include "ops/strips.h"
#include "run/on_device.h"

namespace shunt {
namespace {

// The most threads that read, the caller's own among them.
constexpr std::uint32_t kMostReaders = 16;
// The bytes that a thread reads at a time, enough that the cost of taking the next share is small.
constexpr std::uint64_t kShareBytes = std::uint64_t{512} << 10U;

std::string name_of(std::string_view weight, const Device& device) {
  return fmt::format("weight \"{}\" on {}", weight, device.info().id);
}

}  // namespace

struct WeightLoader::Reading {
  Copy copy;
  std::uint64_t offset;  // in the part
  std::span<std::byte> piece;
  Binding to;
  std::vector<Status> shares;     // the outcome of each
  std::atomic<std::size_t> left;  // shares
  TaskQueue::Batch batch;

  Reading(WeightSource& source, Copy of, std::uint64_t from, std::span<std::byte> lent, const Binding& place)
      : copy(std::move(of)),
        offset(from),
        piece(lent),
        to(place),
        shares((piece.size() + kShareBytes - 1) / kShareBytes),
        left(shares.size()),
        batch(shares.size(), [this, &source](std::size_t share) {
          const std::uint64_t begin = share * kShareBytes;
          const std::uint64_t bytes = std::min<std::uint64_t>(kShareBytes, piece.size() - begin);
          const WeightPart& part = copy.part;
          shares[share] = source.read(part.index, part.offset + offset + begin, piece.subspan(begin, bytes));
          const bool is_last = --left == 0;
          if (is_last && std::ranges::all_of(shares, &Status::has_value))
            source.release(part.index, part.offset + offset, piece.size());
        }) {}
};

WeightLoader::WeightLoader(WeightSource* source) : source_(source) {}

WeightLoader::~WeightLoader() = default;

Status WeightLoader::copy(const std::string& name, const WeightPart& part, Device& device, const Binding& to) {
  if (!since_) since_.emplace();
  const auto begin = [&]() -> Status {
    auto upload = upload_to(device);
    if (!upload) return fail_at(name_of(name, device), on_device(device, std::move(upload)).error());
    return read({.name = name, .part = part, .device = &device, .upload = *upload}, to);
  };
  Status begun = begin();
  if (begun)
    loaded_.bytes += part.bytes;
  else
    abandon();  // the first error is the one to report
  return begun;
}

Status WeightLoader::read(const Copy& copy, const Binding& to) {
  const std::uint64_t unit = to.layout == Layout::strips ? kStripRows * copy.part.row_bytes : 1;
  for (std::uint64_t done = 0; done < copy.part.bytes;) {
    SHUNT_TRY(make_room(*copy.upload));
    auto piece = on_device(*copy.device, copy.upload->take(copy.part.bytes - done, unit));
    // Without memory for another piece, those that there are do.
    while (!piece && piece.error().code == Code::out_of_memory && lent_by(*copy.upload) != 0) {
      SHUNT_TRY(send_first());
      piece = on_device(*copy.device, copy.upload->take(copy.part.bytes - done, unit));
    }
    if (!piece) return fail_at(name_of(copy.name, *copy.device), std::move(piece).error());
    const Binding place{.buffer = to.buffer, .offset = to.offset + done, .bytes = piece->size(), .layout = to.layout};
    readers_->start(reading_.emplace_back(*source_, copy, done, *piece, place).batch);
    done += piece->size();
  }
  return {};
}

std::size_t WeightLoader::lent_by(const Upload& upload) const {
  const auto lent = std::ranges::count(reading_, &upload, [](const Reading& each) { return each.copy.upload; });
  return static_cast<std::size_t>(lent);
}

Status WeightLoader::make_room(const Upload& upload) {
  while (lent_by(upload) >= upload.most_lent() || (!reading_.empty() && readers_->has_ended(reading_.front().batch)))
    SHUNT_TRY(send_first());
  return {};
}

Status WeightLoader::send_first() {
  Reading& first = reading_.front();
  readers_->wait(first.batch);
  const Copy& copy = first.copy;
  Status sent;
  for (Status& share : first.shares)
    if (sent) sent = std::move(share);
  if (sent) sent = on_device(*copy.device, copy.upload->send(first.to, copy.part.rows));
  if (!sent) return fail_at(name_of(copy.name, *copy.device), std::move(sent).error());
  reading_.pop_front();
  return {};
}

Status WeightLoader::send_all() {
  while (!reading_.empty()) SHUNT_TRY(send_first());
  return {};
}

Status WeightLoader::finish() {
  Status sent = send_all();
  Status ended = end();
  return sent ? std::move(ended) : std::move(sent);
}

void WeightLoader::abandon() noexcept {
  // Whoever wants to know how that ends calls finish().
  [[maybe_unused]] const Status ended = guarded([this] { return end(); }, [] { return Status(); });
}

Status WeightLoader::end() {
  readers_.reset();
  reading_.clear();
  Status all;
  for (const auto& [device, upload] : uploads_)
    if (Status arrived = on_device(*device, upload->finish()); all) all = std::move(arrived);
  uploads_.clear();
  if (since_) loaded_.seconds += since_->seconds();
  since_.reset();
  return all;
}

Result<Upload*> WeightLoader::upload_to(Device& device) {
  if (!readers_) readers_.emplace(std::min(usable_cores(), kMostReaders) - 1);
  const auto found = uploads_.find(&device);
  if (found != uploads_.end()) return found->second.get();
  SHUNT_TRY_ASSIGN(std::unique_ptr<Upload> upload, device.upload());
  return uploads_.emplace(&device, std::move(upload)).first->second.get();
}

}  // namespace shunt
