--- The tools that editors offer to Claude Code. Data is JSON in one text; lines and characters count
--- from 0.
local diff = require("sabir.diff")
local position = require("sabir.position")
local selection = require("sabir.selection")

local M = {}

local function object(properties, required)
  return { type = "object", properties = properties, required = required }
end

local text = { type = "string" }
local flag = { type = "boolean" }
local number = { type = "integer" }

local function open_editor(path)
  local buffer = position.buffer_of(path)
  if not buffer then
    return nil, { success = false, message = "Document not open: " .. path }
  end
  return buffer
end

--- The place of a text in a buffer, from `line` on: first line and byte, last line and byte.
local function find(buffer, pattern, line)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  for nth = line, #lines do
    local from, to = lines[nth]:find(pattern, 1, true)
    if from then
      return nth, from - 1, to - 1
    end
  end
end

local function select_lines(first, first_byte, last, last_byte)
  vim.api.nvim_win_set_cursor(0, { first, first_byte })
  vim.cmd("normal! v")
  vim.api.nvim_win_set_cursor(0, { last, last_byte })
end

local function open_file(arguments)
  local path = vim.fn.fnamemodify(arguments.filePath, ":p")
  if vim.fn.filereadable(path) == 0 then
    error("File not found: " .. path, 0)
  end
  local is_front = arguments.makeFrontmost ~= false
  if not is_front then
    local buffer = vim.fn.bufadd(path)
    vim.fn.bufload(buffer)
    vim.bo[buffer].buflisted = true
    return {
      success = true,
      filePath = path,
      languageId = vim.bo[buffer].filetype,
      lineCount = vim.api.nvim_buf_line_count(buffer),
    }
  end
  local escaped = vim.fn.fnameescape(path)
  vim.cmd((vim.bo.buftype == "" and "hide edit " or "split ") .. escaped)
  local buffer = vim.api.nvim_get_current_buf()
  if arguments.startLine then
    local count = vim.api.nvim_buf_line_count(buffer)
    local first = math.max(1, math.min(arguments.startLine, count))
    local last = math.max(first, math.min(arguments.endLine or first, count))
    local line = vim.api.nvim_buf_get_lines(buffer, last - 1, last, false)[1]
    select_lines(first, 0, last, math.max(#line - 1, 0))
  elseif arguments.startText and arguments.startText ~= "" then
    local first, from, to = find(buffer, arguments.startText, 1)
    if first then
      local last, last_byte = first, to
      if arguments.endText and arguments.endText ~= "" then
        local found, _, found_end = find(buffer, arguments.endText, first)
        if found then
          last, last_byte = found, found_end
        end
      end
      if arguments.selectToEndOfLine then
        last_byte = math.max(#vim.fn.getline(last) - 1, 0)
      end
      select_lines(first, from, last, last_byte)
    end
  end
  return "Opened file: " .. path
end

local function get_open_editors()
  local tabs = {}
  local current = vim.api.nvim_get_current_buf()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.bo[buffer].buflisted and position.is_file(buffer) then
      local path = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ":p")
      table.insert(tabs, {
        uri = position.uri(path),
        fileName = path,
        label = vim.fn.fnamemodify(path, ":t"),
        languageId = vim.bo[buffer].filetype,
        isActive = buffer == current,
        isDirty = vim.bo[buffer].modified,
        isUntitled = false,
        lineCount = vim.api.nvim_buf_line_count(buffer),
      })
    end
  end
  return { tabs = tabs }
end

local severities = { "Error", "Warning", "Information", "Hint" }

local function get_diagnostics(arguments)
  local wanted
  if arguments.uri and arguments.uri ~= "" then
    wanted = position.buffer_of(vim.uri_to_fname(arguments.uri))
    if not wanted then
      return {}
    end
  end
  local by_buffer, buffers = {}, {}
  for _, found in ipairs(vim.diagnostic.get(wanted)) do
    local buffer = found.bufnr
    if vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_name(buffer) ~= "" then
      if not by_buffer[buffer] then
        by_buffer[buffer] = {}
        table.insert(buffers, buffer)
      end
      local last, last_byte = found.end_lnum or found.lnum, found.end_col or found.col
      table.insert(by_buffer[buffer], {
        message = found.message,
        severity = severities[found.severity] or "Error",
        source = found.source,
        code = found.code,
        range = {
          start = position.of(buffer, found.lnum, found.col),
          ["end"] = position.of(buffer, last, last_byte),
        },
      })
    end
  end
  local files = {}
  for _, buffer in ipairs(buffers) do
    local uri = position.uri(vim.api.nvim_buf_get_name(buffer))
    table.insert(files, { uri = uri, diagnostics = by_buffer[buffer] })
  end
  return files
end

local function selection_reply(found)
  if not found then
    return { success = false, message = "No active editor found" }
  end
  return vim.tbl_extend("force", { success = true }, found)
end

--- Registers all tools.
function M.register(register)
  register("openFile", {
    description = "Open a file in the editor and optionally select a range of text",
    inputSchema = object({
      filePath = text,
      preview = flag,
      startLine = number,
      endLine = number,
      startText = text,
      endText = text,
      selectToEndOfLine = flag,
      makeFrontmost = flag,
    }, { "filePath" }),
  }, open_file)

  register("openDiff", {
    description = "Open a diff and wait until the user has accepted or rejected it",
    inputSchema = object({
      old_file_path = text,
      new_file_path = text,
      new_file_contents = text,
      tab_name = text,
    }, { "old_file_path", "new_file_path", "new_file_contents", "tab_name" }),
  }, diff.open)

  register("getCurrentSelection", {
    description = "Get the text that is selected in the active editor",
    inputSchema = object({}),
  }, function()
    return selection_reply(selection.current())
  end)

  register("getLatestSelection", {
    description = "Get the most recent selection, even if the editor is not active",
    inputSchema = object({}),
  }, function()
    return selection_reply(selection.latest())
  end)

  register("getOpenEditors", {
    description = "Get the files that are open in the editor",
    inputSchema = object({}),
  }, get_open_editors)

  register("getWorkspaceFolders", {
    description = "Get the folders that are open in the editor",
    inputSchema = object({}),
  }, function()
    local root = vim.fn.getcwd()
    local folder = { name = vim.fn.fnamemodify(root, ":t"), uri = position.uri(root), path = root }
    return { success = true, folders = { folder }, rootPath = root }
  end)

  register("getDiagnostics", {
    description = "Get the diagnostics of one file, or of all that are open",
    inputSchema = object({ uri = text }),
  }, get_diagnostics)

  register("checkDocumentDirty", {
    description = "Check if a file has unsaved changes",
    inputSchema = object({ filePath = text }, { "filePath" }),
  }, function(arguments)
    local buffer, missing = open_editor(arguments.filePath)
    return missing
      or {
        success = true,
        filePath = arguments.filePath,
        isDirty = vim.bo[buffer].modified,
        isUntitled = false,
      }
  end)

  register("saveDocument", {
    description = "Save a file that is open in the editor",
    inputSchema = object({ filePath = text }, { "filePath" }),
  }, function(arguments)
    local buffer, missing = open_editor(arguments.filePath)
    if missing then
      return missing
    end
    local ok, reason = pcall(vim.api.nvim_buf_call, buffer, function()
      vim.cmd("silent write")
    end)
    local message = ok and "Document saved successfully" or tostring(reason)
    return { success = ok, filePath = arguments.filePath, saved = ok, message = message }
  end)

  register("closeAllDiffTabs", {
    description = "Close all diffs; those that are open are rejected",
    inputSchema = object({}),
  }, function()
    return ("CLOSED_%d_DIFF_TABS"):format(diff.reject_all())
  end)

  register("close_tab", {
    description = "Close the diff or the file of this name",
    inputSchema = object({ tab_name = text }, { "tab_name" }),
  }, function(arguments)
    if not diff.close(arguments.tab_name) then
      local buffer = position.buffer_of(arguments.tab_name)
      if buffer and not vim.bo[buffer].modified then
        pcall(vim.api.nvim_buf_delete, buffer, {})
      end
    end
    -- The client has just written the file of a diff.
    vim.cmd("silent! checktime")
    return "TAB_CLOSED"
  end)
end

return M
