import { option, says } from '../../base/named-text.js';
import { shown } from '../../base/option-values.js';
import { ENGINE_TABLE, type EngineLevel } from '../../callbacks/options/table.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

/**
 * Refuses what an option of a level does not take, whatever the others are; undefined counts as not given.
 * @throws ParameterError naming field, value and what is expected.
 */
export function checkValues(level: EngineLevel, given: object): void {
  for (const { level: of, field, nameInErrors, option: taken } of ENGINE_TABLE) {
    if (of !== level) continue;
    const value = (given as Readonly<Record<string, unknown>>)[field];
    if (value === undefined || taken.values.accepts(value)) continue;
    throw new ParameterError(
      nameInErrors,
      says`${option(nameInErrors)} is ${told(value)}; it must be ${taken.values.expected}.`,
    );
  }
}

/** A text as it is, since it stands behind the name of what it was given for. */
function told(value: unknown): string {
  if (typeof value !== 'string') return shown(value);
  return value === '' ? 'empty' : value;
}
