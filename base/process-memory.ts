import { readFileSync } from 'node:fs';

/**
 * Resident bytes of a process, mapped files included; null where the system does not tell, or the process has ended.
 */
export function residentBytes(pid: number): number | null {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return kibibytes === undefined ? null : 1024 * Number(kibibytes);
  } catch {
    return null;
  }
}
