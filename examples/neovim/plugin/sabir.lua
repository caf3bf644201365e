if vim.g.loaded_sabir then
  return
end
vim.g.loaded_sabir = true

local function command(name, description, action, options)
  options = vim.tbl_extend("force", { desc = description }, options or {})
  vim.api.nvim_create_user_command(name, action, options)
end

command("SabirStart", "Offer this editor to Claude Code", function()
  require("sabir").start()
end)

command("SabirStop", "Stop offering this editor", function()
  require("sabir").stop()
end)

command("SabirStatus", "Show the state of the server and its clients", function()
  local status = require("sabir").status()
  local lines = { "sabir: " .. status.state }
  if status.listening then
    table.insert(lines, "  " .. status.listening.url)
  end
  for _, client in pairs(status.clients) do
    local named = client.client or {}
    local name = (named.name or "a client") .. " " .. (named.version or "")
    table.insert(lines, "  " .. name .. ": " .. client.state)
  end
  if status.last_error then
    table.insert(lines, "  " .. status.last_error)
  end
  print(table.concat(lines, "\n"))
end)

command("SabirMention", "Mention the lines of the range, or the file, in the prompt", function(given)
  if given.range > 0 then
    require("sabir").mention(nil, given.line1, given.line2)
  else
    require("sabir").mention()
  end
end, { range = true })

command("SabirAccept", "Accept the proposed change as it is now", function()
  require("sabir.diff").accept()
end)

command("SabirReject", "Reject the proposed change", function()
  require("sabir.diff").reject()
end)
