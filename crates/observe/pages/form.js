// A form from a JSON Schema: fields for simple types, JSON for the rest.

import { h } from './dom.js';

let last = 0;

const list = (value) => (Array.isArray(value) ? value : undefined);
const object = (value) => (value && typeof value === 'object' ? value : undefined);

/**
 * The fields of an object's properties, and a function that reads their values. A schema that names
 * no properties and allows any has one field for all of them.
 */
export function fields(schema) {
  const properties = object(schema?.properties);
  if (!properties && schema?.additionalProperties !== false) return whole();
  const required = new Set(list(schema?.required));
  const all = Object.entries(properties ?? {}).map(([name, property]) =>
    field(name, object(property) ?? {}, required.has(name)));
  const read = () => {
    const values = {};
    for (const { name, value } of all) {
      const given = value();
      if (given !== undefined) values[name] = given;
    }
    return values;
  };
  return { elements: all.map(({ element }) => element), read };
}

function whole() {
  const { element, value } = field('Arguments', { description: 'A JSON object with all arguments.' }, false);
  const read = () => {
    const given = value() ?? {};
    if (!object(given) || list(given)) throw new Error('Arguments is not a JSON object');
    return given;
  };
  return { elements: [element], read };
}

function field(name, property, isRequired) {
  const id = `field-${++last}`;
  const types = [property.type].flat().filter((type) => type && type !== 'null');
  const type = types.length === 1 ? types[0] : undefined;
  const { input, value } = control(id, name, type, property, isRequired);
  const hint = property.description
    ? h('p', { class: 'hint', id: `${id}-hint` }, property.description) : null;
  if (hint) input.setAttribute('aria-describedby', `${id}-hint`);
  const label = h('label', { for: id }, property.title ?? name, isRequired ? ' *' : '');
  return { name, value, element: h('div', { class: 'field' }, label, input, hint) };
}

function control(id, name, type, property, required) {
  const choices = list(property.oneOf);
  const options = list(property.enum) ?? choices?.map((one) => one?.const);
  if (options && options.every((option) => option !== undefined)) {
    const titles = list(property.enumNames) ?? choices?.map((one) => one?.title ?? one?.const);
    const input = h('select', { id, required },
      h('option', { value: '' }, '–'),
      options.map((option, nth) => h('option', { value: String(nth) }, String(titles?.[nth] ?? option))));
    if (property.default !== undefined) {
      const nth = options.indexOf(property.default);
      if (nth >= 0) input.value = String(nth);
    }
    return { input, value: () => (input.value === '' ? undefined : options[Number(input.value)]) };
  }
  if (type === 'boolean') {
    const input = h('select', { id, required },
      h('option', { value: '' }, '–'), h('option', { value: 'true' }, 'yes'), h('option', { value: 'false' }, 'no'));
    if (property.default !== undefined) input.value = String(property.default);
    return { input, value: () => (input.value === '' ? undefined : input.value === 'true') };
  }
  if (type === 'number' || type === 'integer') {
    const input = h('input', {
      id, required, type: 'number', step: type === 'integer' ? '1' : 'any',
      min: property.minimum, max: property.maximum, value: property.default ?? '',
    });
    return { input, value: () => (input.value === '' ? undefined : Number(input.value)) };
  }
  if (type === 'string') {
    const isSecret = property.format === 'password' || property.writeOnly === true;
    const kind = { email: 'email', uri: 'url', date: 'date' }[property.format];
    const isLong = !kind && !isSecret && (property.maxLength ?? 0) > 200;
    const input = h(isLong ? 'textarea' : 'input', {
      id, required, type: isSecret ? 'password' : kind ?? 'text', autocomplete: 'off',
      minlength: property.minLength, maxlength: property.maxLength, value: property.default ?? '',
    });
    return { input, value: () => (input.value === '' && !required ? undefined : input.value) };
  }
  const input = h('textarea', {
    id, required, placeholder: 'JSON', spellcheck: 'false',
    value: property.default === undefined ? '' : JSON.stringify(property.default),
  });
  return {
    input,
    value: () => {
      if (input.value.trim() === '') return undefined;
      try {
        return JSON.parse(input.value);
      } catch (error) {
        throw new Error(`${name} is not JSON: ${error.message}`);
      }
    },
  };
}
