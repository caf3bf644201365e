--- The pipe to `sabir serve --host`: we are an MCP server on its standard streams, one message a
--- line. This is all that an editor has to speak; see docs/editors.md.
local M = {}

local tools = {} -- by name: { schema, handler }
local order = {} -- names, in the order in which they were registered
local calls = {} -- open calls, by the text of their id
local clients = {} -- by connection: { client, state }
local job, listening, last_error
local partial = {}

local function event(pattern, data)
  -- Neovim 0.7 cannot pass data with an event: it is in a variable.
  vim.g.sabir_event = data
  vim.api.nvim_exec_autocmds("User", { pattern = pattern, modeline = false })
end

local function send(message)
  if job then
    message.jsonrpc = "2.0"
    vim.fn.chansend(job, vim.json.encode(message) .. "\n")
  end
end

--- Sends a notification: to every client, or to sabir itself if its name says so.
function M.notify(method, params)
  send({ method = method, params = params or vim.empty_dict() })
end

--- The best state of all clients.
function M.state()
  if not job then
    return "stopped"
  end
  local best = "waiting"
  for _, client in pairs(clients) do
    if client.state == "ready" then
      return "ready"
    end
    best = "initializing"
  end
  return best
end

function M.status()
  return { state = M.state(), listening = listening, clients = clients, last_error = last_error }
end

function M.tool_names()
  return vim.deepcopy(order)
end

local function described(schema)
  local input = schema.inputSchema or schema.input_schema
  local description = schema.description
  if not input then
    input = vim.deepcopy(schema)
    input.description = nil
  end
  if vim.tbl_isempty(input) then
    input = { type = "object" }
  end
  input = vim.deepcopy(input)
  if type(input.properties) == "table" and vim.tbl_isempty(input.properties) then
    input.properties = vim.empty_dict()
  end
  return { description = description, inputSchema = input }
end

function M.register(name, schema, handler)
  if not tools[name] then
    table.insert(order, name)
  end
  tools[name] = { schema = described(schema), handler = handler }
  M.notify("notifications/tools/list_changed")
end

function M.unregister(name)
  if tools[name] then
    tools[name] = nil
    order = vim.tbl_filter(function(known)
      return known ~= name
    end, order)
    M.notify("notifications/tools/list_changed")
  end
end

--- A handler's result as the result of a tool.
local function wrap(result)
  if type(result) == "table" and result.content then
    return result
  end
  local text = type(result) == "string" and result or vim.json.encode(result)
  return { content = { { type = "text", text = text } } }
end

local function call_tool(id, params)
  local tool = tools[params.name]
  if not tool then
    send({ id = id, error = { code = -32602, message = "unknown tool: " .. tostring(params.name) } })
    return
  end
  local key = vim.json.encode(id)
  local call = { id = id }
  local function finish(result)
    if calls[key] == call then
      calls[key] = nil
      send({ id = id, result = result })
    end
  end
  function call.respond(result)
    local ok, wrapped = pcall(wrap, result)
    if ok and pcall(vim.json.encode, wrapped) then
      finish(wrapped)
    else
      call.fail("the result of the tool cannot be written as JSON")
    end
  end
  function call.fail(message)
    finish({ content = { { type = "text", text = tostring(message) } }, isError = true })
  end
  --- Calls `callback` if the client gives up or leaves.
  function call.on_cancel(callback)
    call.cancelled = callback
  end
  calls[key] = call
  local ok, result = pcall(tool.handler, params.arguments or {}, call)
  if not ok then
    -- The model needs the message, and not the place in our code.
    call.fail((tostring(result):gsub("^[^\n:]+:%d+: ", "")))
  elseif result ~= nil then
    call.respond(result)
  end
end

local handlers = {
  initialize = function(id, params)
    send({
      id = id,
      result = {
        protocolVersion = params.protocolVersion,
        capabilities = { tools = { listChanged = true } },
        serverInfo = { name = "Neovim", version = "0.1.0" },
      },
    })
  end,
  ping = function(id)
    send({ id = id, result = vim.empty_dict() })
  end,
  ["tools/list"] = function(id)
    local list = {}
    for _, name in ipairs(order) do
      local schema = tools[name].schema
      table.insert(list, {
        name = name,
        description = schema.description,
        inputSchema = schema.inputSchema,
      })
    end
    send({ id = id, result = { tools = list } })
  end,
  ["tools/call"] = call_tool,
  ["notifications/cancelled"] = function(_, params)
    local key = vim.json.encode(params.requestId)
    local call = calls[key]
    calls[key] = nil
    if call and call.cancelled then
      call.cancelled()
    end
  end,
  ["notifications/host/listening"] = function(_, params)
    listening = params
    event("SabirListening", params)
  end,
  ["notifications/client/connected"] = function(_, params)
    clients[params.connection] = { client = params.client, state = params.state }
    if params.state == "ready" then
      event("ClaudeCodeClientConnected", params)
    end
  end,
  ["notifications/client/notified"] = function(_, params)
    event("SabirClientNotified", params)
  end,
  ["notifications/client/disconnected"] = function(_, params)
    clients[params.connection] = nil
    event("ClaudeCodeClientDisconnected", params)
  end,
}

local function receive(line)
  local ok, message = pcall(vim.json.decode, line, { luanil = { object = true } })
  if not ok or type(message) ~= "table" then
    return
  end
  local handler = message.method and handlers[message.method]
  if handler then
    handler(message.id, message.params or {})
  elseif message.method and message.id ~= nil then
    local text = "unknown method: " .. message.method
    send({ id = message.id, error = { code = -32601, message = text } })
  end
end

--- The pieces of a line arrive in any number of parts.
local function on_stdout(_, data)
  for nth, piece in ipairs(data) do
    if nth > 1 then
      local line = table.concat(partial)
      partial = {}
      if line ~= "" then
        -- An error, such as one of a user's autocommand, must not lose the messages after this one.
        local ok, reason = pcall(receive, line)
        if not ok then
          vim.notify("sabir: " .. tostring(reason), vim.log.levels.ERROR)
        end
      end
    end
    table.insert(partial, piece)
  end
end

local function on_stderr(_, data)
  for _, line in ipairs(data) do
    if line:match("^error") or line:match("^warning") then
      last_error = line
      vim.notify("sabir: " .. line, vim.log.levels.WARN)
    end
  end
end

local function forget()
  job, listening, partial = nil, nil, {}
  local open = calls
  calls, clients = {}, {}
  for _, call in pairs(open) do
    if call.cancelled then
      call.cancelled()
    end
  end
end

function M.start(command)
  if job then
    return true
  end
  last_error = nil
  if vim.fn.executable(command[1]) == 0 then
    last_error = "no program `" .. command[1] .. "` (set `command` in setup())"
    vim.notify("sabir: " .. last_error, vim.log.levels.ERROR)
    return false
  end
  local id
  id = vim.fn.jobstart(command, {
    on_stdout = on_stdout,
    on_stderr = on_stderr,
    on_exit = function(_, code)
      if job ~= id then
        return
      end
      forget()
      if code ~= 0 then
        last_error = last_error or ("sabir ended with exit code " .. code)
        vim.notify("sabir: " .. last_error, vim.log.levels.ERROR)
      end
      event("SabirStopped", { code = code })
    end,
  })
  job = id > 0 and id or nil
  return job ~= nil
end

--- Closes the pipe: sabir ends by itself, and removes its lock file.
function M.stop()
  if job then
    local ending = job
    forget()
    vim.fn.chanclose(ending, "stdin")
    vim.fn.jobwait({ ending }, 3000)
    vim.fn.jobstop(ending)
  end
end

return M
