#include "habits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "output.h"

namespace shunt::cli {
namespace {

enum class HabitKind { same, with_value, needless, absent };

struct Habit {
  HabitKind kind;
  std::string_view spellings;
  std::string_view takes;
  std::string_view words;  // what replaces it, or the sentence
};

constexpr Habit kHabits[] = {
#define SHUNT_HABIT(spellings, becomes) {HabitKind::same, spellings, "", becomes},
#define SHUNT_HABIT_VALUE(spellings, value, words) {HabitKind::with_value, spellings, value, words},
#define SHUNT_HABIT_NEEDLESS(spellings, takes, sentence) {HabitKind::needless, spellings, takes, sentence},
#define SHUNT_HABIT_ABSENT(spellings, takes, sentence) {HabitKind::absent, spellings, takes, sentence},
#include "habits.def"
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return words;
}

bool lists(std::string_view words, std::string_view word) {
  const std::vector<std::string> all = split(words);
  return std::ranges::find(all, word) != all.end();
}

class Translation {
 public:
  Translation(const CommandLine& line, std::span<const std::string> words) : line_(line), rest_(words) {}

  std::vector<std::string> words() {
    while (!rest_.empty() && rest_.front() != "--") translate(take());
    std::vector<std::string> all = std::move(first_);
    all.insert(all.end(), options_.begin(), options_.end());
    if (!last_.empty() && rest_.empty()) all.emplace_back("--");
    all.insert(all.end(), rest_.begin(), rest_.end());
    all.insert(all.end(), last_.begin(), last_.end());
    return all;
  }

 private:
  std::string take() {
    std::string word = rest_.front();
    rest_ = rest_.subspan(1);
    return word;
  }

  // An option of the command itself, never an argument.
  [[nodiscard]] std::optional<Option> own(const std::string& name) const {
    if (!name.starts_with('-')) return std::nullopt;
    return line_.find(name);
  }

  void translate(const std::string& word) {
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    if (const auto option = own(name); option || !name.starts_with('-')) {
      options_.push_back(word);
      // The next word is its value, even if it looks like an option.
      if (option && option->takes_value() && !value && !rest_.empty()) options_.push_back(take());
      return;
    }
    for (const Habit& habit : kHabits)
      if (lists(habit.spellings, name) && apply(habit, name, value)) return;
    options_.push_back(word);
  }

  bool apply(const Habit& habit, const std::string& name, std::optional<std::string>& value) {
    if (habit.kind == HabitKind::same) return rename(habit, value);
    if (habit.kind == HabitKind::with_value) {
      const bool follows = !value && !rest_.empty() && rest_.front() == habit.takes;
      const std::vector<std::string> words = split(habit.words);
      if ((!follows && value != habit.takes) || !own(words.front())) return false;
      if (follows) take();
      options_.insert(options_.end(), words.begin(), words.end());
      return true;
    }
    if (!line_.find("MODEL")) return false;  // these options are for commands with a model
    const bool one = habit.takes == "N";
    if (!value && !rest_.empty() && (one || lists(habit.takes, rest_.front()))) take();
    const std::string text = fmt::format("{}: {}", name, habit.words);
    if (habit.kind == HabitKind::absent) refuse(text);
    note(text + ".");
    return true;
  }

  bool rename(const Habit& habit, std::optional<std::string>& value) {
    for (const std::string& name : split(habit.words)) {
      const auto option = line_.find(name);
      if (!option) continue;
      if (!option->takes_value()) {
        options_.push_back(name);
        return true;
      }
      if (!value && rest_.empty()) refuse(fmt::format("{} needs a value", split(habit.spellings).front()));
      const std::string given = value ? *value : take();
      if (!option->is_argument()) {
        add(name, given);
      } else {
        // The model is the first argument; a text comes last, since it may begin with a dash.
        (name == "MODEL" || name == "IN" ? first_ : last_).push_back(given);
      }
      return true;
    }
    return false;
  }

  // Adds an option once if it is given twice with one value, as for the cache types of keys and of values.
  void add(const std::string& name, const std::string& value) {
    for (std::size_t at = 0; at + 1 < options_.size(); ++at)
      if (options_[at] == name && options_[at + 1] == value) return;
    options_.push_back(name);
    options_.push_back(value);
  }

  const CommandLine& line_;
  std::span<const std::string> rest_;
  std::vector<std::string> first_;    // arguments that go before all others
  std::vector<std::string> options_;  // and the other arguments, in the given order
  std::vector<std::string> last_;     // arguments that go after them
};

}  // namespace

std::vector<std::string> in_our_words(const CommandLine& line, std::span<const std::string> words) {
  return Translation(line, words).words();
}

}  // namespace shunt::cli
