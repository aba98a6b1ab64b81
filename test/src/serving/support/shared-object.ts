import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';

/** An object of shared memory as a client makes it, for one test. */
export class SharedObject {
  readonly key = `/skein-test-${randomUUID()}`;

  constructor(bytes: Uint8Array) {
    this.write(bytes);
    onTestFinished(() => rmSync(this.path, { force: true }));
  }

  get path(): string {
    return `/dev/shm${this.key}`;
  }

  write(bytes: Uint8Array): void {
    writeFileSync(this.path, bytes);
  }

  read(): Buffer {
    return readFileSync(this.path);
  }

  shrink(bytes: number): void {
    truncateSync(this.path, bytes);
  }
}
