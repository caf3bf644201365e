class Sabir < Formula
  desc "@ABOUT@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "MIT"

  on_linux do
@BLOCKS@
  end

  def install
    bin.install "sabir"
    man1.install "man/sabir.1"
    bash_completion.install "completions/sabir.bash" => "sabir"
    zsh_completion.install "completions/_sabir"
    fish_completion.install "completions/sabir.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sabir --version")
  end
end
