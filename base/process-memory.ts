import { readFileSync } from 'node:fs';

/** Bytes of memory that a process has, files that it has mapped and read included; null where the system does not say, or it is gone. */
export function residentBytes(pid: number): number | null {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return kibibytes === undefined ? null : 1024 * Number(kibibytes);
  } catch {
    return null;
  }
}
