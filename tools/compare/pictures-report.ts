import { markdownTable } from '../support/markdown-table.js';
import { median } from '../support/statistics.js';
import { conditionsLine } from './comparison-report.js';
import type { ComparisonRecord } from './record.js';

/** Columns of the table: what they have, of which measurement, with how many digits. */
const SHOWN = [
  ['pictures/s', 'users', 'picturesPerSecond', 2],
  ['first question, s', 'second', 'first', 2],
  ['second question, s', 'second', 'second', 3],
  ['texts alone, tokens/s', 'texts', 'alone', 1],
  ['next to pictures', 'texts', 'beside', 1],
  ['lost, %', 'texts', 'lostPercent', 0],
  ['longest gap alone, ms', 'texts', 'gapAlone', 0],
  ['next to pictures, ms', 'texts', 'gapBeside', 0],
  ['texts where no picture comes, tokens/s', 'plain', 'tokens', 1],
] as const;

/** All that was measured, by server. */
export function picturesReport(record: ComparisonRecord): string {
  const { users, side, texts, pictures } = record.recorded.settings;
  const rows = record.recorded.sides.map(({ name }) => [
    name,
    ...SHOWN.map((shown) => cellOf(record, name, shown)),
  ]);
  const summary = ratiosOf(record);
  return [
    `${conditionsLine(record)} Pictures of ${side} x ${side} pixels of noise, all different: ${users} users with one each; two questions on one; ${texts} users of texts, alone and while ${pictures} pictures are asked about one after the other. Medians of the rounds.`,
    '',
    markdownTable(['server, tower', ...SHOWN.map(([title]) => title)], rows),
    '',
    summary,
  ].join('\n');
}

function cellOf(
  record: ComparisonRecord,
  side: string,
  [, column, key, digits]: (typeof SHOWN)[number],
): string {
  const value = median(record.values(side, column, key));
  return Number.isNaN(value) ? '' : value.toFixed(digits);
}

/** A sentence with the ratios of what was measured. */
function ratiosOf(record: ComparisonRecord): string {
  const { sides, settings } = record.recorded;
  const value = (side: string, column: string, key: string) => median(record.values(side, column, key));
  const [ours, blind] = sides.filter(({ engine }) => engine === 'skein');
  if (ours === undefined) return '';
  const peers = sides.filter(({ engine }) => engine !== 'skein');
  const measured = (column: string) =>
    peers.filter(({ name }) => record.values(name, column, KEYS[column]!).length > 0);
  const of = (name: string) => value(name, 'users', 'picturesPerSecond');
  const times = of(ours.name) / Math.max(...measured('users').map(({ name }) => of(name)));
  const [first, second] = ['first', 'second'].map((key) => value(ours.name, 'second', key));
  const lost = (name: string) => value(name, 'texts', 'lostPercent').toFixed(0);
  const gap = (name: string) => value(name, 'texts', 'gapBeside').toFixed(0);
  const earlier = (name: string) =>
    `, ${(value(name, 'second', 'first') / value(name, 'second', 'second')).toFixed(0)} times with ${name}`;
  const peersEarlier = measured('second')
    .map(({ name }) => earlier(name))
    .join('');
  const others = measured('texts').map(({ name }) => `${lost(name)} % and ${gap(name)} ms of ${name}`);
  const parts = {
    users: `${settings.users} users with ${settings.users} pictures: ${of(ours.name).toFixed(2)} pictures/s, ${times.toFixed(2)} times llama-server's best`,
    second: `a second question on a picture begins ${(first! / second!).toFixed(0)} times as early as the first${peersEarlier}`,
    texts: `users of texts lose ${lost(ours.name)} % of their tokens while pictures are seen and wait ${gap(ours.name)} ms at most, compared with ${others.join(', ')}`,
    plain: `texts have ${(value(ours.name, 'plain', 'tokens') / value(blind?.name ?? '', 'plain', 'tokens')).toFixed(3)} times the tokens of the same model without a tower where no picture comes`,
  };
  const known = Object.entries(parts).filter(
    ([column]) => record.values(ours.name, column, KEYS[column]!).length > 0,
  );
  return `${known.map(([, part]) => part).join('; ')}.`;
}

/** A value that each column has. */
const KEYS: Readonly<Record<string, string>> = {
  users: 'picturesPerSecond',
  second: 'first',
  texts: 'lostPercent',
  plain: 'tokens',
};
