import { option, says } from '../../base/named-text.js';
import { mustBe, shown } from '../../base/option-values.js';
import { ENGINE_TABLE, type EngineLevel } from '../../callbacks/options/table.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

/**
 * Refuses values that an option of a level cannot have, whatever the other options are; undefined counts as not given.
 * @throws ParameterError naming field, value and what is expected.
 */
export function checkValues(level: EngineLevel, given: object): void {
  for (const { level: of, field, nameInErrors, option: taken } of ENGINE_TABLE) {
    if (of !== level) continue;
    const value = (given as Readonly<Record<string, unknown>>)[field];
    if (value === undefined || taken.values.accepts(value)) continue;
    throw new ParameterError(
      nameInErrors,
      says`${option(nameInErrors)} is ${told(value)}; it must be ${mustBe(taken.values, value)}.`,
    );
  }
}

/** Shows a value for an error message; a text is not quoted, since it follows the name of its option. */
function told(value: unknown): string {
  if (typeof value !== 'string') return shown(value);
  return value === '' ? 'empty' : value;
}
