/** Show the number of items next to the cart icon. */
export function updateBadge(cart) {
  const count = cart.items.reduce((sum, item) => sum + item.quantity, 0);
  document.querySelector("#badge").textContent = String(count);
}

/** Send the cart to the server and show the order number. */
export async function submitOrder(cart) {
  const response = await fetch("/orders", { method: "POST", body: JSON.stringify(cart) });
  if (!response.ok) throw new Error(`checkout failed: ${response.status}`);
  updateBadge({ items: [] });
  return (await response.json()).order;
}
