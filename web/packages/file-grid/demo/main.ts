import '@syncline/tokens/tokens.css';
import './demo.css';
import { mount } from 'svelte';
import Demo from './Demo.svelte';

const target = document.getElementById('demo');
if (target) mount(Demo, { target });
