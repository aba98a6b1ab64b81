import { expect, it } from 'vitest';
import { strftime } from '../../../models/jinja/strftime.js';

const morning = new Date(2025, 0, 5, 0, 7, 9);
const evening = new Date(2024, 11, 31, 23, 59, 0);

it.each([
  ['%d %b %Y', '05 Jan 2025', '31 Dec 2024'],
  ['%A, %B %-d, %y', 'Sunday, January 5, 25', 'Tuesday, December 31, 24'],
  ['%a %e', 'Sun  5', 'Tue 31'],
  ['%H:%M:%S %I %p', '00:07:09 12 AM', '23:59:00 11 PM'],
  ['%F %T', '2025-01-05 00:07:09', '2024-12-31 23:59:00'],
  ['%-m/%-H 100%% %Q', '1/0 100% %Q', '12/23 100% %Q'],
])('writes %s as C does', (format, first, second) => {
  expect(strftime(morning, format)).toBe(first);
  expect(strftime(evening, format)).toBe(second);
});
