import { closeSync, openSync, writeSync } from 'node:fs';

/**
 * Says a line to the user who installs. npm shows what the scripts of a project itself write, but keeps that
 * of its dependencies to itself: there the line goes to the terminal, where there is one.
 */
export function say(line) {
  process.stderr.write(`skein: ${line}\n`);
  const {
    npm_lifecycle_event: event,
    npm_config_foreground_scripts: foreground,
    npm_config_loglevel,
  } = process.env;
  const isHidden = event === 'install' && foreground !== 'true' && npm_config_loglevel !== 'silent';
  if (!isHidden || process.stderr.isTTY || process.platform === 'win32') return;
  try {
    const terminal = openSync('/dev/tty', 'w');
    // npm's spinner stands on the line: it is erased first.
    writeSync(terminal, `\r\x1b[Kskein: ${line}\n`);
    closeSync(terminal);
  } catch {
    // No terminal: a container's build, a CI job.
  }
}
