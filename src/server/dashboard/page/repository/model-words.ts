import type { ModelRow, ModelsEvent, ModelWork, SizeCount } from '../../../feeds/models-event.js';
import { count, plural } from '../formation/words.js';

/** What a badge shows: its mark, and its words. */
export interface Badge {
  mark: 'ready' | 'changing' | 'away' | 'failed';
  text: string;
}

const FAILURES = {
  REJECTED: 'refused',
  CANCELED: 'cancelled',
  BACKEND: 'failed in the model',
  OTHER: 'failed otherwise',
} as const satisfies Record<keyof ModelWork['failures'], string>;

/** State of a version in a word or a few. */
export function badgeOf({ state, reason, work }: ModelRow): Badge {
  if (state === 'READY') {
    if (work !== null && isDown(work)) return { mark: 'failed', text: 'Ready, but no instance runs' };
    return { mark: 'ready', text: 'Ready' };
  }
  if (state === 'LOADING') return { mark: 'changing', text: 'Loading' };
  if (state === 'UNLOADING') return { mark: 'changing', text: 'Unloading' };
  if (state === null || state === 'UNKNOWN') return { mark: 'away', text: 'Never loaded' };
  return isUnloaded(reason) ? { mark: 'away', text: 'Unloaded' } : { mark: 'failed', text: 'Unavailable' };
}

/** The reason, where the badge does not say it already. */
export function reasonOf({ reason }: ModelRow): string {
  return isUnloaded(reason) || reason === 'unloading' ? '' : reason;
}

function isUnloaded(reason: string): boolean {
  return reason === 'unloaded';
}

function isDown({ instances: { busy, idle } }: ModelWork): boolean {
  return busy + idle === 0;
}

/** "4 instances: 2 busy, 1 idle, 1 starting; started again 3 times", or "1 instance: busy" */
export function instanceWords({ instances, restarts }: Pick<ModelWork, 'instances' | 'restarts'>): string {
  const { busy, idle, starting, dead } = instances;
  const number = busy + idle + starting + dead;
  const parts = Object.entries({ busy, idle, starting, dead }).flatMap(([name, some]) => {
    if (some === 0) return [];
    return [number === 1 ? name : `${count(some)} ${name}`];
  });
  const anew = restarts > 0 ? `; started again ${restarts === 1 ? 'once' : `${count(restarts)} times`}` : '';
  return `${plural(number, 'instance')}: ${parts.join(', ')}${anew}`;
}

/** "Not answered: 3 refused, 9 failed in the model"; '' where none did. */
export function failureWords({ failures }: Pick<ModelWork, 'failures'>): string {
  const reasons = Object.entries(FAILURES) as [keyof typeof FAILURES, string][];
  const parts = reasons.flatMap(([reason, words]) =>
    failures[reason] > 0 ? [`${count(failures[reason])} ${words}`] : [],
  );
  return parts.length === 0 ? '' : `Not answered: ${parts.join(', ')}`;
}

/** "LoRA adapters: sql, poet and 3 more"; '' where there are none. */
export function adapterWords({ adapters }: Pick<ModelWork, 'adapters'>): string {
  if (adapters === null || adapters.count === 0) return '';
  const more = adapters.count - adapters.names.length;
  const which = more > 0 ? ` and ${count(more)} more` : '';
  return `LoRA adapter${adapters.count === 1 ? '' : 's'}: ${adapters.names.join(', ')}${which}`;
}

/** "Sequences: 12 live, 3 in the backlog"; '' of a model without any. */
export function sequenceWords({ sequences }: Pick<ModelWork, 'sequences'>): string {
  if (sequences === null) return '';
  const { live, backlog } = sequences;
  return `Sequences: ${count(live)} live${backlog === 0 ? '' : `, ${count(backlog)} in the backlog`}`;
}

/** Below the bar of a batch size: its number, or the last one of a range, where that is a power of two: not every bar has room. */
export function sizeLabel([from, to]: SizeCount): string {
  return from === to || Number.isInteger(Math.log2(to)) ? String(to) : '';
}

/** "Batches by their rows: 12 of 1, 30 of 2, 4 of 3 to 4." */
export function sizesSentence(sizes: readonly SizeCount[]): string {
  const parts = sizes.map(([from, to, batches]) => {
    return `${count(batches)} of ${from === to ? count(from) : `${count(from)} to ${count(to)}`}`;
  });
  return `Batches by their rows: ${parts.join(', ')}.`;
}

const STATES: readonly [state: keyof ModelsEvent['states'], words: string][] = [
  ['READY', 'ready'],
  ['LOADING', 'loading'],
  ['UNLOADING', 'unloading'],
  ['UNAVAILABLE', 'unavailable'],
  ['UNKNOWN', 'never loaded'],
];

/** "500 models: 498 ready, 2 loading." Versions count each. */
export function summaryOf({ models, states }: Pick<ModelsEvent, 'models' | 'states'>): string {
  if (models === 0) return 'This server has no model yet.';
  const parts = STATES.flatMap(([state, words]) => {
    const number = states[state] ?? 0;
    return number > 0 ? [`${count(number)} ${words}`] : [];
  });
  return `${plural(models, 'model')}: ${parts.join(', ')}.`;
}

/** "450 more models are not shown. ..."; '' where all are. */
export function moreWords({ models, rows }: Pick<ModelsEvent, 'models' | 'rows'>): string {
  const more = models - rows.length;
  if (more <= 0) return '';
  const are = more === 1 ? 'is' : 'are';
  return `${plural(more, 'more model')} ${are} not shown: those here load, have failed, or were asked last.`;
}

/** Text of a mean: 8 µs, 1.2 ms, 118 ms, 2.31 s; '–': not measured. */
export function meanTime(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 0.1) return `${Math.max(1, Math.round(1000 * ms))} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(2)} s`;
}

/** Mean rows of a batch: 6.3. */
export function meanRows({ rows, batches }: Pick<ModelWork, 'rows' | 'batches'>): string {
  return batches === 0 ? '–' : (rows / batches).toFixed(1).replace(/\.0$/, '');
}
