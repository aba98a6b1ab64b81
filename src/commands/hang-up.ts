import { closeSync, openSync } from 'node:fs';

/**
 * Calls `reload` at each SIGHUP, which is how operators ask a server to read its files again. A server in a terminal that is closed ends as
 * by SIGTERM instead: it would go on without anyone to see it.
 */
export function onHangUp(reload: () => void): void {
  const isInTerminal = process.stdout.isTTY === true;
  process.on('SIGHUP', () => {
    if (isInTerminal && !hasTerminal()) process.kill(process.pid, 'SIGTERM');
    else reload();
  });
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
