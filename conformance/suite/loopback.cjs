// The suite's own servers listen on all interfaces. This makes it this machine only. `listen` with a
// host would bind later than without one, and some of them ask for their port at once.
const net = require("node:net");

const bind = net.Server.prototype._listen2;
net.Server.prototype._listen2 = function (address, port, type, ...rest) {
  const isOpen = address === null && (type === 4 || type === 6);
  return isOpen ? bind.call(this, "127.0.0.1", port, 4, ...rest) : bind.call(this, address, port, type, ...rest);
};
