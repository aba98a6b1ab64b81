/** A number that a request may have: its name in the API, and its field. */
export interface NumberField {
  name: string;
  label: string;
  /** What holds where the field is empty. */
  placeholder: string;
  attributes: Readonly<Record<string, string>>;
}

const whole = (min: string) => ({ min, step: '1' });
const share = { min: '0', max: '1', step: '0.01' };

/** Those that most readers want. */
export const USUAL_FIELDS: readonly NumberField[] = [
  {
    name: 'temperature',
    label: 'Temperature',
    placeholder: '1',
    // The default is below the API's 1, since small models then keep to their subject.
    attributes: { value: '0.7', min: '0', max: '2', step: '0.1' },
  },
  { name: 'top_p', label: 'Top p', placeholder: '1', attributes: { min: '0.01', max: '1', step: '0.01' } },
  { name: 'max_tokens', label: 'Max tokens', placeholder: 'server\u2019s', attributes: whole('1') },
  { name: 'top_k', label: 'Top k', placeholder: 'off', attributes: whole('0') },
  { name: 'min_p', label: 'Min p', placeholder: 'off', attributes: share },
  {
    name: 'repetition_penalty',
    label: 'Repetition penalty',
    placeholder: '1',
    attributes: { min: '0.01', max: '2', step: '0.01' },
  },
  {
    name: 'presence_penalty',
    label: 'Presence penalty',
    placeholder: '0',
    attributes: { min: '-2', max: '2', step: '0.1' },
  },
  {
    name: 'frequency_penalty',
    label: 'Frequency penalty',
    placeholder: '0',
    attributes: { min: '-2', max: '2', step: '0.1' },
  },
  { name: 'seed', label: 'Seed', placeholder: 'random', attributes: whole('0') },
];

/** Those that are rarely wanted. */
export const RARE_FIELDS: readonly NumberField[] = [
  { name: 'min_tokens', label: 'Min tokens', placeholder: '0', attributes: whole('0') },
  { name: 'no_repeat_ngram_size', label: 'No-repeat n-gram', placeholder: 'off', attributes: whole('0') },
  { name: 'repeat_last_n', label: 'Penalty window', placeholder: 'all', attributes: whole('-1') },
  { name: 'typical_p', label: 'Typical p', placeholder: 'off', attributes: share },
  { name: 'top_n_sigma', label: 'Top n sigma', placeholder: 'off', attributes: { min: '0', step: '0.1' } },
  { name: 'xtc_probability', label: 'XTC probability', placeholder: 'off', attributes: share },
  { name: 'xtc_threshold', label: 'XTC threshold', placeholder: '0.1', attributes: share },
  {
    name: 'dynatemp_range',
    label: 'Dynamic temp. range',
    placeholder: 'off',
    attributes: { min: '0', step: '0.1' },
  },
  {
    name: 'dynatemp_exponent',
    label: 'Dynamic temp. exponent',
    placeholder: '1',
    attributes: { min: '0', step: '0.1' },
  },
  { name: 'mirostat', label: 'Mirostat', placeholder: 'off', attributes: { min: '0', max: '2', step: '1' } },
  { name: 'mirostat_tau', label: 'Mirostat tau', placeholder: '5', attributes: { min: '0', step: '0.1' } },
  { name: 'mirostat_eta', label: 'Mirostat eta', placeholder: '0.1', attributes: { min: '0', step: '0.01' } },
  {
    name: 'dry_multiplier',
    label: 'DRY multiplier',
    placeholder: 'off',
    attributes: { min: '0', step: '0.1' },
  },
  { name: 'dry_base', label: 'DRY base', placeholder: '1.75', attributes: { min: '1', step: '0.05' } },
  { name: 'dry_allowed_length', label: 'DRY allowed length', placeholder: '2', attributes: whole('1') },
  { name: 'dry_penalty_last_n', label: 'DRY window', placeholder: 'all', attributes: whole('-1') },
];
