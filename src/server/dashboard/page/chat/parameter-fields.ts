import { MAX_INT32 } from '../../../../../base/int32.js';
import { inShownOrder, type Parameter, shownBounds } from '../../../../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../../../../../callbacks/request/parameters.js';

/** A number that a request may have: its name in the API, and its field. */
export interface NumberField {
  name: string;
  label: string;
  /** What holds where the field is empty. */
  placeholder: string;
  attributes: Readonly<Record<string, string>>;
}

type ShownParameter = Parameter & { form: object };

const shown = inShownOrder(NAMED_PARAMETERS).flatMap(({ field, parameter }) =>
  parameter.form === undefined ? [] : { name: field, parameter: parameter as ShownParameter },
);
const fields = (isUsual: boolean) =>
  shown
    .filter(({ parameter }) => (parameter.form.isUsual ?? false) === isUsual)
    .map(({ name, parameter }) => numberField(name, parameter));

function numberField(name: string, parameter: ShownParameter): NumberField {
  const { label, empty = String(parameter.default), value, step = 1 } = parameter.form;
  const { min, max } = limitsOf(parameter);
  const attributes = { value, min, max, step };
  const given = Object.entries(attributes).filter(([, one]) => one !== undefined);
  return {
    name,
    label,
    placeholder: empty,
    attributes: Object.fromEntries(given.map(([key, one]) => [key, String(one)])),
  };
}

/** A limit as high as integers of 32 bits is none for a reader. */
function limitsOf(parameter: ShownParameter): { min: number | undefined; max: number | undefined } {
  const [least, most = MAX_INT32] = shownBounds(parameter) ?? [];
  const { min = least, max = most === MAX_INT32 ? undefined : most } = parameter.form;
  return { min, max };
}

const MAX_TOKENS: NumberField = {
  name: 'max_tokens',
  label: 'Max tokens',
  placeholder: 'server\u2019s',
  attributes: { min: '1', step: '1' },
};

/** Those that most readers want: the length of the answer stands among the first. */
export const USUAL_FIELDS: readonly NumberField[] = fields(true).toSpliced(2, 0, MAX_TOKENS);

/** Those that are rarely wanted. */
export const RARE_FIELDS: readonly NumberField[] = fields(false);
