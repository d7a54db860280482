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
  std::optional<trace::Span> span;
  std::vector<Status> shares;     // the outcome of each
  std::atomic<std::size_t> left;  // shares
  TaskQueue::Batch batch;

  Reading(WeightSource& source, trace::Recorder* recorder, Copy of, std::uint64_t from, std::span<std::byte> lent,
          const Binding& place)
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
          if (is_last) span.reset();
        }) {
    span.emplace(recorder, trace::Kind::load, "reading", copy.device->info().id, piece.size());
  }
};

WeightLoader::WeightLoader(WeightSource* source, trace::Recorder* recorder) : source_(source), recorder_(recorder) {}

WeightLoader::~WeightLoader() = default;

void WeightLoader::expect(Device& device, std::uint64_t bytes) {
  if (!since_) since_.emplace();
  // An error comes again when the first weight is copied.
  if (const auto upload = upload_to(device)) (*upload)->expect(bytes);
}

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
    SHUNT_TRY_ASSIGN(const std::span<std::byte> piece, take(copy, copy.part.bytes - done, unit));
    const Binding place{.buffer = to.buffer, .offset = to.offset + done, .bytes = piece.size(), .layout = to.layout};
    readers_->start(reading_.emplace_back(*source_, recorder_, copy, done, piece, place).batch);
    done += piece.size();
  }
  return {};
}

Result<std::span<std::byte>> WeightLoader::take(const Copy& copy, std::uint64_t bytes, std::uint64_t unit) {
  while (true) {
    while (!reading_.empty() && readers_->has_ended(reading_.front().batch)) SHUNT_TRY(send_first());
    auto piece = [&] {
      const trace::Span lending = stage("lending", *copy.device);
      return on_device(*copy.device, copy.upload->take(bytes, unit));
    }();
    if (!piece) return fail_at(name_of(copy.name, *copy.device), std::move(piece).error());
    if (!piece->empty()) return piece;
    SHUNT_TRY(send_first());
  }
}

Status WeightLoader::send_first() {
  Reading& first = reading_.front();
  const Copy& copy = first.copy;
  {
    const trace::Span waiting = stage("waiting for a piece", *copy.device);
    readers_->wait(first.batch);
  }
  const trace::Span sending = stage("sending", *copy.device, first.piece.size());
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
  for (const auto& [device, upload] : uploads_) {
    const trace::Span finishing = stage("finishing", *device);
    if (Status arrived = on_device(*device, upload->finish()); all) all = std::move(arrived);
  }
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
