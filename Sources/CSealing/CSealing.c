#include "CSealing.h"
