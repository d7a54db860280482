#include "devices/webgl/texture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace shunt::webgl {
namespace {

constexpr std::uint64_t kTexelBytes = sizeof(std::uint32_t);
// Words per texel when reading: the only format that every context supports.
constexpr std::uint64_t kReadWords = 4;
constexpr std::uint64_t kReadRows = 64;  // per call

// Calls visit(rectangle, words before it) in order for the pieces that make up these words of a texture.
template <class Visit>
void for_each_piece(std::uint64_t first, std::uint64_t words, std::uint64_t most_rows, const Visit& visit) {
  for (std::uint64_t done = 0; done < words;) {
    const std::uint64_t column = (first + done) % kRowWords;
    const std::uint64_t rest = words - done;
    std::uint64_t piece = std::min(rest, kRowWords - column);
    if (column == 0 && rest >= kRowWords) piece = std::min(rest / kRowWords, most_rows) * kRowWords;
    visit(rectangle_of(first + done, piece), done);
    done += piece;
  }
}

}  // namespace

Result<std::unique_ptr<Texture>> Texture::create(std::shared_ptr<Context> context, std::uint64_t bytes) {
  std::unique_ptr<Texture> texture(new Texture(std::move(context), bytes));
  SHUNT_TRY(texture->allocate());
  return texture;
}

Status Texture::allocate() {
  if (const std::uint64_t most = context_->limits().shader.largest_binding_bytes; bytes_ > most)
    return fail(Code::out_of_memory, fmt::format("a texture has at most {}", most));
  whole_ = rectangle_of(0, std::max<std::uint64_t>(1, (bytes_ + kTexelBytes - 1) / kTexelBytes));
  const Functions& call = context_->call();
  call.GenTextures(1, &name_);
  call.BindTexture(kTexture2D, name_);
  call.TexParameteri(kTexture2D, kMinFilter, kNearest);
  call.TexParameteri(kTexture2D, kMagFilter, kNearest);
  call.TexStorage2D(kTexture2D, 1, kR32Ui, whole_.width, whole_.height);
  SHUNT_TRY(context_->check("texStorage2D"));
  call.GenFramebuffers(1, &framebuffer_);
  call.BindFramebuffer(kFramebuffer, framebuffer_);
  call.FramebufferTexture2D(kFramebuffer, kColorAttachment0, kTexture2D, name_, 0);
  const GLenum status = call.CheckFramebufferStatus(kFramebuffer);
  SHUNT_TRY(context_->check("framebufferTexture2D"));
  if (status != kFramebufferComplete)
    return fail(Code::internal, fmt::format("a framebuffer of words is not complete: {:#06x}", status));
  constexpr std::array<GLuint, 4> kZero{};
  call.ClearBufferuiv(kColor, 0, kZero.data());
  return context_->check("clearBufferuiv");
}

Texture::~Texture() {
  context_->call().DeleteFramebuffers(1, &framebuffer_);
  context_->call().DeleteTextures(1, &name_);
}

Status Texture::write(std::uint64_t offset, std::span<const std::byte> from) {
  if (from.empty()) return {};
  const std::uint64_t first = offset / kTexelBytes;
  const std::uint64_t words = (offset % kTexelBytes + from.size() + kTexelBytes - 1) / kTexelBytes;
  if (words * kTexelBytes == from.size()) {
    write_words(first, from);
    return context_->check("texSubImage2D");
  }
  std::vector<std::uint32_t> filled(words);
  read_words(first, std::span(filled).first(1));
  read_words(first + words - 1, std::span(filled).last(1));
  const auto bytes = std::as_writable_bytes(std::span(filled));
  std::ranges::copy(from, bytes.begin() + static_cast<std::ptrdiff_t>(offset % kTexelBytes));
  write_words(first, bytes);
  return context_->check("texSubImage2D");
}

void Texture::write_words(std::uint64_t first, std::span<const std::byte> words) const {
  const Functions& call = context_->call();
  call.BindTexture(kTexture2D, name_);
  for_each_piece(first, words.size() / kTexelBytes, ~std::uint64_t{0}, [&](const Rectangle& at, std::uint64_t before) {
    call.TexSubImage2D(kTexture2D, 0, at.x, at.y, at.width, at.height, kRedInteger, kUnsignedInt,
                       words.data() + before * kTexelBytes);
  });
}

Status Texture::read(std::uint64_t offset, std::span<std::byte> to) const {
  if (to.empty()) return {};
  const std::uint64_t begin = offset % kTexelBytes;
  std::vector<std::uint32_t> words((begin + to.size() + kTexelBytes - 1) / kTexelBytes);
  read_words(offset / kTexelBytes, words);
  std::memcpy(to.data(), std::as_bytes(std::span(words)).data() + begin, to.size());
  return context_->check("readPixels");
}

void Texture::read_words(std::uint64_t first, std::span<std::uint32_t> words) const {
  const Functions& call = context_->call();
  call.BindFramebuffer(kFramebuffer, framebuffer_);
  std::vector<std::uint32_t> texels;
  for_each_piece(first, words.size(), kReadRows, [&](const Rectangle& at, std::uint64_t before) {
    const auto count = static_cast<std::uint64_t>(at.width) * static_cast<std::uint64_t>(at.height);
    texels.resize(count * kReadWords);
    call.ReadPixels(at.x, at.y, at.width, at.height, kRgbaInteger, kUnsignedInt, texels.data());
    for (std::uint64_t i = 0; i < count; ++i) words[before + i] = texels[i * kReadWords];
  });
}

void Texture::copy(const Texture& from, const Rectangle& at, const Rectangle& to) const {
  const Functions& call = context_->call();
  call.BindFramebuffer(kFramebuffer, from.framebuffer_);
  call.BindTexture(kTexture2D, name_);
  call.CopyTexSubImage2D(kTexture2D, 0, to.x, to.y, at.x, at.y, at.width, at.height);
}

}  // namespace shunt::webgl
