--- The selection: read, remembered, and sent to clients.
local pipe = require("sabir.pipe")
local position = require("sabir.position")

local M = {}
local latest, told

--- The selection of the current window, or nil if it shows no file.
function M.current()
  local buffer = vim.api.nvim_get_current_buf()
  if not position.is_file(buffer) then
    return nil
  end
  local path = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ":p")
  local mode = vim.api.nvim_get_mode().mode
  local selection = { filePath = path, fileUrl = position.uri(path), text = "" }
  if not mode:match("^[vV\22]") then
    local cursor = vim.api.nvim_win_get_cursor(0)
    local place = position.of(buffer, cursor[1] - 1, cursor[2])
    selection.selection = { start = place, ["end"] = place, isEmpty = true }
    return selection
  end
  local from, to = vim.fn.getpos("v"), vim.fn.getpos(".")
  if from[2] > to[2] or (from[2] == to[2] and from[3] > to[3]) then
    from, to = to, from
  end
  local first, last = from[2] - 1, to[2] - 1
  local lines = vim.api.nvim_buf_get_lines(buffer, first, last + 1, false)
  local start_byte, end_byte = from[3] - 1, to[3]
  if mode == "V" then
    start_byte, end_byte = 0, #lines[#lines]
  else
    -- A block is told as the text between its corners.
    local length = #lines[#lines]
    if end_byte < length then
      -- To the end of the last character, which may have several bytes.
      end_byte = vim.fn.byteidx(lines[#lines], vim.fn.charidx(lines[#lines], end_byte - 1) + 1)
    end
    end_byte = math.min(end_byte, length)
  end
  if #lines == 1 then
    lines[1] = lines[1]:sub(start_byte + 1, end_byte)
  else
    lines[1] = lines[1]:sub(start_byte + 1)
    lines[#lines] = lines[#lines]:sub(1, end_byte)
  end
  selection.text = table.concat(lines, "\n")
  selection.selection = {
    start = position.of(buffer, first, start_byte),
    ["end"] = position.of(buffer, last, end_byte),
    isEmpty = selection.text == "",
  }
  return selection
end

--- The last selection in a file, even if another window is current.
function M.latest()
  return M.current() or latest
end

function M.tell()
  local selection = M.current()
  if not selection then
    return
  end
  latest = selection
  local text = vim.json.encode(selection)
  if text ~= told and pipe.state() == "ready" then
    told = text
    pipe.notify("selection_changed", selection)
  end
end

--- Calls `callback` once, when there were no further calls for a while.
local function debounced(delay, callback)
  local timer = vim.loop.new_timer()
  return function()
    timer:stop()
    timer:start(delay, 0, vim.schedule_wrap(callback))
  end
end

--- Tells clients of the selection and of diagnostics from now on.
function M.track(group, delay)
  vim.api.nvim_create_autocmd(
    { "CursorMoved", "CursorMovedI", "ModeChanged", "BufEnter", "TextChanged" },
    { group = group, callback = debounced(delay, M.tell) }
  )
  -- A new client knows no selection yet.
  vim.api.nvim_create_autocmd("User", {
    group = group,
    pattern = "ClaudeCodeClientConnected",
    callback = function()
      told = nil
      vim.defer_fn(M.tell, delay)
    end,
  })
  local changed = {}
  local tell_changed = debounced(delay, function()
    local uris = vim.tbl_keys(changed)
    changed = {}
    table.sort(uris)
    pipe.notify("diagnostics_changed", { uris = uris })
  end)
  vim.api.nvim_create_autocmd("DiagnosticChanged", {
    group = group,
    callback = function(arguments)
      if position.is_file(arguments.buf) then
        changed[position.uri(vim.api.nvim_buf_get_name(arguments.buf))] = true
        tell_changed()
      end
    end,
  })
end

return M
