import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { cleanEnvironment, cliPath, testCacheDir } from './skein-process.js';

const script = fileURLToPath(new URL('./in-terminal.py', import.meta.url));

/** A terminal in which something runs. */
export interface Terminal {
  /** All that was sent to it so far, escape sequences included. */
  shown(): string;
  /** Waits until what was sent after the last such wait has the text, and returns it up to its end. */
  waitFor(text: string | RegExp): Promise<string>;
  type(text: string): void;
  resize(rows: number, columns: number): void;
  kill(signal: number): void;
  /** Closes the terminal under what runs in it. */
  close(): void;
  ended: Promise<number | null>;
}

export const CTRL_C = '\x03';
export const CTRL_D = '\x04';

/** Longest time for something to be shown: a bound for hangs. */
const LIMIT_MS = 300_000;

/** Runs the compiled command line in a pseudo-terminal. */
export function runInTerminal(
  args: readonly string[],
  {
    rows = 24,
    columns = 80,
    environment = {} as Record<string, string>,
    command = [process.execPath, cliPath],
  } = {},
): Terminal {
  const child = spawn('python3', [script, String(rows), String(columns), ...command, ...args], {
    env: cleanEnvironment({ TERM: 'xterm-256color', SKEIN_CACHE_DIR: testCacheDir, ...environment }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let shown = '';
  let seen = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  child.stdin.on('error', () => {});
  const order = (one: object) => void child.stdin.write(`${JSON.stringify(one)}\n`);
  const ended = once(child, 'close').then(([code]) => code as number | null);
  let isEnded = false;
  void ended.then(() => {
    isEnded = true;
  });
  return {
    shown: () => shown,
    async waitFor(text) {
      const deadline = Date.now() + LIMIT_MS;
      for (;;) {
        const fresh = shown.slice(seen);
        const found = typeof text === 'string' ? fresh.indexOf(text) : fresh.search(text);
        if (found >= 0) {
          const length = typeof text === 'string' ? text.length : text.exec(fresh)![0].length;
          seen += found + length;
          return fresh.slice(0, found + length);
        }
        if (isEnded || Date.now() > deadline) {
          throw new Error(
            `${text} was not shown${isEnded ? ' before the end' : ''}, but ${JSON.stringify(fresh)}`,
          );
        }
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    type: (text) => order({ write: text }),
    resize: (rows, columns) => order({ resize: [rows, columns] }),
    kill: (signal) => order({ signal }),
    close: () => void child.kill('SIGKILL'),
    ended,
  };
}
