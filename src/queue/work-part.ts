/** What a process of a worker with several models receives from the one that has started it. */
export interface WorkPart {
  /** Its name as a worker. */
  worker: string;
  /** Name of its model. */
  model: string;
  /** Most bytes of its KV cache. */
  cacheBytes: number;
}

/** What such a process reports. */
export interface PartReport {
  /** It takes requests. */
  isReady: boolean;
  /** Requests that it has. */
  held: number;
}

const VARIABLE = 'SKEIN_WORK_PART';

/** Other programs that start a worker and listen to it receive none of this. */
const isPart = process.env[VARIABLE] !== undefined;

/** Environment of a process for one of the models. */
export function environmentOf(part: WorkPart): NodeJS.ProcessEnv {
  return { ...process.env, [VARIABLE]: JSON.stringify(part) };
}

/** null: this process is no part of another one. */
export function ownPart(): WorkPart | null {
  const text = process.env[VARIABLE];
  return text === undefined || process.send === undefined ? null : (JSON.parse(text) as WorkPart);
}

/** Ends this process, as a signal does, where the one that has started it is gone. @returns lets both go their ways */
export function followParent(): () => void {
  const onGone = () => process.kill(process.pid, 'SIGTERM');
  process.on('disconnect', onGone);
  return () => {
    process.off('disconnect', onGone);
    if (process.connected) process.disconnect();
  };
}

export function tellParent(report: PartReport): void {
  if (isPart && process.connected) process.send?.(report);
}
