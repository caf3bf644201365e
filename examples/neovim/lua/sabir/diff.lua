--- `openDiff`: a diff in a tab of its own, which answers when the user has decided.
---
--- The right side is the proposal, and can be edited. `:write` or `:SabirAccept` there accepts it as
--- it is then; `:SabirReject`, or closing the tab, rejects it.
local M = {}

local open = {} -- by tab name: { tab, old, new, answer, … }

local function read(path)
  local file = io.open(path, "rb")
  if not file then
    return ""
  end
  local text = file:read("*a")
  file:close()
  return text
end

--- Fills a buffer with a text, such that `text_of` gives the same back.
local function fill(buffer, text)
  local lines = vim.split(text, "\n", { plain = true })
  local has_eol = #lines > 1 and lines[#lines] == ""
  if has_eol then
    table.remove(lines)
  end
  local is_dos = has_eol
  for _, line in ipairs(lines) do
    is_dos = is_dos and line:sub(-1) == "\r"
  end
  if is_dos then
    for nth, line in ipairs(lines) do
      lines[nth] = line:sub(1, -2)
    end
  end
  if text == "\n" then
    -- An empty line is something else than no line: it must be what is left of two.
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, { "", "" })
    vim.api.nvim_buf_set_lines(buffer, 1, 2, false, {})
  elseif text ~= "" then
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  end
  vim.bo[buffer].fileformat = is_dos and "dos" or "unix"
  vim.b[buffer].sabir_eol = has_eol or text == ""
end

local function text_of(buffer)
  -- A buffer without lines looks like one with an empty line, but it has no first byte.
  local is_empty = vim.api.nvim_buf_call(buffer, function()
    return vim.fn.line2byte(1) == -1
  end)
  if is_empty then
    return ""
  end
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local eol = vim.bo[buffer].fileformat == "dos" and "\r\n" or "\n"
  return table.concat(lines, eol) .. (vim.b[buffer].sabir_eol and eol or "")
end

local function scratch(name, text, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  -- A name may be taken by a buffer that is about to go.
  pcall(vim.api.nvim_buf_set_name, buffer, name)
  fill(buffer, text)
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].modified = false
  if filetype and filetype ~= "" then
    vim.bo[buffer].syntax = filetype
  end
  return buffer
end

--- Ends a diff: closes its tab, and answers.
local function finish(diff, outcome, text)
  if open[diff.name] ~= diff then
    return
  end
  open[diff.name] = nil
  M.last = { name = diff.name, outcome = outcome }
  if vim.api.nvim_tabpage_is_valid(diff.tab) then
    local windows = vim.api.nvim_tabpage_list_wins(diff.tab)
    if #vim.api.nvim_list_tabpages() == 1 then
      vim.cmd("tabnew")
    end
    for _, window in ipairs(windows) do
      pcall(vim.api.nvim_win_close, window, true)
    end
  end
  for _, buffer in ipairs({ diff.old, diff.new }) do
    if vim.api.nvim_buf_is_valid(buffer) then
      pcall(vim.api.nvim_buf_delete, buffer, { force = true })
    end
  end
  diff.answer({
    content = { { type = "text", text = outcome }, { type = "text", text = text } },
  })
end

local function accept(diff)
  finish(diff, "FILE_SAVED", text_of(diff.new))
end

local function reject(diff)
  finish(diff, "DIFF_REJECTED", diff.name)
end

--- Shows a diff. `arguments` are those of the tool `openDiff`.
function M.open(arguments, call)
  local name = arguments.tab_name or vim.fn.fnamemodify(arguments.new_file_path, ":t")
  if open[name] then
    reject(open[name])
  end
  local filetype = ""
  if vim.filetype and vim.filetype.match then
    local ok, found = pcall(vim.filetype.match, { filename = arguments.new_file_path })
    filetype = ok and found or ""
  end
  local old = scratch("sabir://old/" .. name, read(arguments.old_file_path or ""), filetype)
  local new = scratch("sabir://new/" .. name, arguments.new_file_contents or "", filetype)
  vim.bo[old].modifiable = false
  vim.bo[new].buftype = "acwrite"
  vim.cmd("tabnew")
  local empty = vim.api.nvim_get_current_buf()
  local tab = vim.api.nvim_get_current_tabpage()
  vim.api.nvim_win_set_buf(0, old)
  if empty ~= old and vim.api.nvim_buf_is_valid(empty) then
    pcall(vim.api.nvim_buf_delete, empty, { force = true })
  end
  vim.cmd("diffthis")
  vim.cmd("rightbelow vsplit")
  vim.api.nvim_win_set_buf(0, new)
  vim.cmd("diffthis")
  local diff = { name = name, tab = tab, old = old, new = new, answer = call.respond }
  open[name] = diff
  call.on_cancel(function()
    reject(diff)
  end)
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = new,
    callback = function()
      vim.bo[new].modified = false
      -- Not while the command still uses the buffer.
      vim.schedule(function()
        accept(diff)
      end)
    end,
  })
  for _, buffer in ipairs({ old, new }) do
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = buffer,
      callback = function()
        vim.schedule(function()
          reject(diff)
        end)
      end,
    })
  end
end

--- The diff of the current tab, else the only one.
function M.current()
  local tab = vim.api.nvim_get_current_tabpage()
  local names = vim.tbl_keys(open)
  for _, diff in pairs(open) do
    if diff.tab == tab then
      return diff
    end
  end
  return #names == 1 and open[names[1]] or nil
end

local function decide(action)
  local diff = M.current()
  if not diff then
    vim.notify("sabir: no diff is open in this tab", vim.log.levels.WARN)
    return
  end
  action(diff)
end

function M.accept()
  decide(accept)
end

function M.reject()
  decide(reject)
end

--- Closes the diff of that name, if it is open.
function M.close(name)
  if open[name] then
    reject(open[name])
    return true
  end
  return false
end

--- Rejects all diffs, and says how many there were.
function M.reject_all()
  local names = vim.tbl_keys(open)
  for _, name in ipairs(names) do
    M.close(name)
  end
  return #names
end

function M.names()
  local names = vim.tbl_keys(open)
  table.sort(names)
  return names
end

return M
