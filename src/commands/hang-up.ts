import { closeSync, openSync } from 'node:fs';

/**
 * Listens for SIGHUP, which is how operators ask a server to read its files again. A server in a terminal
 * that is closed ends as by SIGTERM instead: it would run on unseen.
 * @returns takes what reloads, once the server has loaded; a SIGHUP that came before is answered then.
 */
export function listenForHangUp(): (reload: () => void) => void {
  const isInTerminal = process.stdout.isTTY === true;
  let isAsked = false;
  let answer = (): void => {
    isAsked = true;
  };
  process.on('SIGHUP', () => {
    if (isInTerminal && !hasTerminal()) process.kill(process.pid, 'SIGTERM');
    else answer();
  });
  return (reload) => {
    answer = reload;
    if (isAsked) reload();
  };
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
