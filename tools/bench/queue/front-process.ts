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
export async function startFront(args: readonly string[]): Promise<FrontProcess> {
  const child = spawn(process.execPath, [cli, ...args, '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (bytes: Buffer) => {
        output += String(bytes);
        const found = /at (https?:\S+)\/v1/.exec(output)?.[1];
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
