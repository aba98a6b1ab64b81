import type { ChildProcess } from 'node:child_process';

/**
 * The address that a `skein serve` whose stdout is piped prints when it listens. @throws Error where it ends
 * before.
 */
export function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let greeting = '';
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      greeting += text;
      const found = /at (http:\S+)\/v1/.exec(greeting)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', () => reject(new Error('The server ended before it listened.')));
  });
}
