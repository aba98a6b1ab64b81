import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const cli = fileURLToPath(new URL('../../../dist/bin/skein.js', import.meta.url));

/** A server or a gateway in a process of its own. */
export interface FrontProcess {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

/** Starts a command on a free port, and waits until it says where it listens. */
export function startFront(args: readonly string[]): Promise<FrontProcess> {
  return start([...args, '--port', '0'], /at (https?:\S+)\/v1/);
}

/** Starts a worker, and waits until it takes requests. Its url is its name. */
export function startWorker(args: readonly string[]): Promise<FrontProcess> {
  return start(args, /worker (w\w+), equal/);
}

async function start(args: readonly string[], told: RegExp): Promise<FrontProcess> {
  const child = spawn(process.execPath, [cli, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (bytes: Buffer) => {
        output += String(bytes);
        const found = told.exec(output)?.[1];
        if (found !== undefined) resolve(found);
      });
    }
    void ended.then(() => reject(new Error(`skein ${args[0]} has ended: ${output}`)));
  });
  return {
    url,
    pid: child.pid!,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
