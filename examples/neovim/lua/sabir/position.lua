--- Places in a buffer, as clients count them: lines and characters from 0, characters in UTF-16.
local M = {}

--- The place of a byte in a line of a buffer; both count from 0.
function M.of(buffer, line, byte)
  local text = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1] or ""
  local ok, _, utf16 = pcall(vim.str_utfindex, text, math.min(byte, #text))
  return { line = line, character = ok and utf16 or byte }
end

--- `file:///…` of a path.
function M.uri(path)
  local whole = vim.fn.fnamemodify(path, ":p"):gsub("(.)/$", "%1")
  return vim.uri_from_fname(whole)
end

--- The buffer of a file that is open, or nil.
function M.buffer_of(path)
  path = vim.fn.resolve(vim.fn.fnamemodify(path, ":p"))
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buffer)
    if vim.api.nvim_buf_is_loaded(buffer) and name ~= "" then
      if vim.fn.resolve(vim.fn.fnamemodify(name, ":p")) == path then
        return buffer
      end
    end
  end
end

--- Whether a buffer shows a file, and not a terminal, a diff of ours or the like.
function M.is_file(buffer)
  return vim.api.nvim_buf_is_valid(buffer)
    and vim.bo[buffer].buftype == ""
    and vim.api.nvim_buf_get_name(buffer) ~= ""
end

return M
