import { HTML_FILTERS } from './html.js';
import { tojson } from './json.js';
import { NUMBER_FILTERS } from './numbers.js';
import { FILTERS, TESTS } from './registry.js';
import { SELECTION_FILTERS } from './selection.js';
import { SEQUENCE_FILTERS } from './sequences.js';
import { BUILT_IN_TESTS } from './tests.js';
import { TEXT_FILTERS } from './texts.js';

/** Fills the tables of filters and tests with all of Jinja2's. */
for (const filters of [
  TEXT_FILTERS,
  NUMBER_FILTERS,
  SEQUENCE_FILTERS,
  SELECTION_FILTERS,
  HTML_FILTERS,
  { tojson },
]) {
  for (const [name, filter] of Object.entries(filters)) FILTERS.set(name, filter);
}
for (const [name, test] of Object.entries(BUILT_IN_TESTS)) TESTS.set(name, test);
